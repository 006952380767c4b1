"""The web host as a whole: what `lineup run` and `lineup desktop` open.

Order, with the reason for each step:
1. the port is bound before the kernel is started: what cannot be served is said before anything runs;
2. while the kernel starts, a process of its own, the server is imported here, which takes as long again: in a thread, so that whoever
   holds the kernel goes on. So nothing at the head of this file may import the server;
3. the kernel is up before anything is announced: READY means that the page will show it;
4. READY goes to stdout, one line, for people and programs; a browser gets a token that opens once;
5. SIGINT, SIGTERM, SIGHUP, or the desktop window closing: pages hear goodbye (1001), then the process ends. The kernel goes on.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from hosts.launch import Launcher
from hosts.output import Exit, print_data, print_note
from hosts.web.address import Address, Names, keep_place, listen, names_of, read_places
from hosts.web.keeper import Keeper
from hosts.web.tokens import Tokens

if TYPE_CHECKING:
    from hosts.web.browser import Window

NOT_FOR_PRODUCTION = (
    "This address is reached over plain HTTP: whoever is on that network can read and change what passes. It is not fit for production;"
    " no installed app is opened there and no app's own surface is shown."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the person asked for. is_window: an app window instead of the browser; language: of the demo Agent, en or zh; environ: what a
    browser is started with."""

    address: Address
    opens_browser: bool = True
    is_window: bool = False
    is_demo: bool = False
    language: str = "en"
    environ: Mapping[str, str]


async def run_web(launcher: Launcher, wish: Wish) -> Exit:
    """Serve until a signal or the window ends it. Raises (in a group): AddressRefused, KernelUnreachable, Refused, HomeRefused."""
    home = launcher.home
    home.create()
    remembered = read_places(home)
    with listen(wish.address, remembered) as listening:
        place = keep_place(home, remembered, int(listening.getsockname()[1]))
        names = names_of(wish.address, place.port)
        async with trio.open_nursery() as nursery:
            keeper, tokens = Keeper(launcher), Tokens(place.token, trio.current_time)
            async with trio.open_nursery() as both:
                both.start_soon(nursery.start, keeper.run)
                both.start_soon(trio.to_thread.run_sync, _import_server)
            from hosts.web.front import Look, open_front

            look = Look(language=wish.language, is_demo=wish.is_demo, is_loopback=names.is_loopback)
            server = open_front(listening, names.origins, keeper, tokens, look)
            await nursery.start(server.run)
            code = await _until_the_end(wish, names, keeper, tokens)
            with trio.CancelScope(shield=True):
                await server.stop()
            nursery.cancel_scope.cancel()
    return code


def _import_server() -> None:
    """Step 2. None of what is imported is garbage, and to look for some takes a tenth of the time."""
    gc.disable()
    try:
        import hosts.web.browser
        import hosts.web.demo
        import hosts.web.front  # noqa: F401
    finally:
        gc.enable()


async def _until_the_end(wish: Wish, names: Names, keeper: Keeper, tokens: Tokens) -> Exit:
    """Announce, open what was asked for, and wait for the reason to end."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        _announce(names, tokens)
        async with trio.open_nursery() as nursery:
            if wish.is_demo:
                from hosts.web.demo import run_demo_agent

                nursery.start_soon(run_demo_agent, keeper, wish.language)
            window = _open(wish, names, keeper, tokens)
            if window is not None:
                nursery.start_soon(_end_with, window, nursery.cancel_scope)
            code = Exit.OK
            async for number in signals:
                code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.OK
                break
            nursery.cancel_scope.cancel()
    if window is not None:
        with trio.CancelScope(shield=True):
            await window.close()
    return code


async def _end_with(window: Window, scope: trio.CancelScope) -> None:
    await window.wait_closed()
    scope.cancel()


def _announce(names: Names, tokens: Tokens) -> None:
    if not names.is_loopback:
        print_note(NOT_FOR_PRODUCTION)
    for origin in names.origins.values():
        if origin != names.said:
            print_note(f"also at {origin}/#token={tokens.lasting}")
    print_data(f"READY {names.said}/#token={tokens.lasting}")
    print_note("Ctrl-C leaves; the kernel goes on for a while, and so do open calls. `lineup console` is the same in a terminal.")


def _open(wish: Wish, names: Names, keeper: Keeper, tokens: Tokens) -> Window | None:
    if not wish.opens_browser:
        return None
    from hosts.web.browser import open_browser

    return open_browser(f"{names.said}/#token={tokens.opening()}", keeper.home, wish.environ, is_window=wish.is_window)
