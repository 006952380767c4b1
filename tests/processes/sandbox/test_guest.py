"""The guest in real sealed processes: its source is checked, runs from memory, and every end has its code."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
import trio

from kernel.spares import spawn_ready
from lineup_sdk.channel import ChannelClosed
from lineup_sdk.protocol.control import ExitCode
from lineup_sdk.protocol.limits import MAX_LOG_TEXT_BYTES
from tests.processes.kernel_under_test import ROOT
from tests.processes.sandbox.cage import Captive, announce, capture, open_zygote, send_app

ECHO = """
class Echo:
    async def serve(self, channel, welcome):
        while True:
            for frame in await channel.receive():
                channel.send({"type": "outcome", "text": self.answer(frame, welcome)})
                await channel.drain()

    def answer(self, frame, welcome):
        return eval(frame["name"], globals(), {"welcome": welcome})

app = Echo()
"""


@pytest.fixture
async def zygote():
    async with open_zygote() as zygote:
        yield zygote


async def _ended(zygote, files: dict[str, bytes], source: dict[str, Any] | None = None) -> tuple[ExitCode | None, str]:
    """Start an app that cannot live; returns its exit code and its log."""
    with trio.fail_after(30):
        ready = await spawn_ready(zygote)
        captive = Captive(ready)
        send_app(ready.channel, files, source)
        try:
            await ready.channel.drain()
            await captive.next_frame()
        except ChannelClosed:
            pass
        code = (await ready.process.wait_exited()).code
        captive.channel.close()
    return code, captive.log


def _spoiled(files: dict[str, bytes], **change: Any) -> dict[str, Any]:
    source = announce(files)
    source["files"][0].update(change)
    return source


@pytest.mark.parametrize(
    "source",
    [
        _spoiled({"app.py": ECHO.encode()}, sha256="0" * 64),
        _spoiled({"app.py": ECHO.encode()}, size=1),
        _spoiled({"app.py": ECHO.encode()}, size=len(ECHO) + 1),
        _spoiled({"app.py": ECHO.encode()}, size=-1),
        _spoiled({"app.py": ECHO.encode()}, size="1"),
        _spoiled({"app.py": ECHO.encode()}, name="other.py"),
        _spoiled({"app.py": ECHO.encode()}, name="../app.py"),
        _spoiled({"app.py": ECHO.encode()}, more=1),
        {**announce({"app.py": ECHO.encode()}), "entry": "main.py"},
        {"entry": "app.py", "files": []},
        {"entry": "app.py", "files": announce({"app.py": ECHO.encode()})["files"] * 2},
    ],
    ids=["digest", "too small", "too large", "negative", "not a number", "another name", "a path", "extra key", "entry", "none", "twice"],
)
@pytest.mark.clause("9")
async def test_source_that_is_not_as_announced_never_runs(zygote, source):
    code, _ = await _ended(zygote, {"app.py": ECHO.encode()}, source)
    assert code is ExitCode.SOURCE_INVALID


@pytest.mark.parametrize("name", ["json.py", "trio.py", "lineup_sdk.py", "sys.py", "_socket.py"])
async def test_a_file_cannot_take_the_name_of_a_module_that_is_there(zygote, name):
    code, log = await _ended(zygote, {"app.py": ECHO.encode(), name: b"x = 1\n"})
    assert code is ExitCode.SOURCE_INVALID
    assert name in log


async def test_an_app_that_fails_while_imported_leaves_a_traceback_with_its_lines(zygote):
    code, log = await _ended(zygote, {"app.py": b"import part\n", "part.py": b"x = 1\nundefined_name + x\n"})
    assert code is ExitCode.IMPORT_FAILED
    assert 'File "part.py", line 2' in log
    assert "undefined_name + x" in log
    assert "NameError" in log


async def test_a_module_that_is_not_offered_is_an_ordinary_import_error(zygote):
    code, log = await _ended(zygote, {"app.py": b"import sqlite3\n"})
    assert code is ExitCode.IMPORT_FAILED
    assert "module 'sqlite3' is not available to a MiniApp" in log


# Where this machine keeps the product and its interpreter; /usr is everybody's.
FOLDERS = sorted({str(ROOT), os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix)} - {"/usr"})
PLACES = b"""
import gc, json, sys, types

def texts():
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType):
            yield one.__qualname__, one.__code__.co_filename
        elif isinstance(one, dict):
            yield from ((name, text) for name, text in list(one.items()) if type(name) is str and type(text) is str)
            many = [(name, items) for name, items in list(one.items()) if type(items) in (list, tuple)]
            yield from ((name, item) for name, items in many for item in items if type(item) is str)
    yield from ((name, getattr(sys, name)) for name in dir(sys) if type(getattr(sys, name)) is str)

class App:
    async def serve(self, channel, welcome):
        own = welcome.epoch
        while True:
            for frame in await channel.receive():
                places = json.loads(frame["name"])
                found = [(name, text) for name, text in texts() if any(place in text for place in places) and text != frame["name"]]
                channel.send({"type": "outcome", "text": json.dumps([found[:9], sys.modules["trio"].__file__])})
                await channel.drain()

app = App()
"""


@pytest.mark.clause("3")
@pytest.mark.invariant("44")
async def test_no_module_function_or_attribute_names_a_folder_of_this_machine(zygote):
    captive = await capture(zygote, {"app.py": PLACES})
    found, trio_file = json.loads(await captive.ask(json.dumps(FOLDERS)))
    assert (found, trio_file) == ([], "<trio>")
    await captive.end()


async def test_a_traceback_through_a_library_names_its_modules_and_no_folder(zygote):
    code, log = await _ended(zygote, {"app.py": b"import json\njson.loads('{')\n"})
    assert code is ExitCode.IMPORT_FAILED
    assert 'File "<json.decoder>", line' in log
    assert 'File "/' not in log


async def test_an_entry_without_an_app_has_its_own_code(zygote):
    code, _ = await _ended(zygote, {"app.py": b"app = 5\n"})
    assert code is ExitCode.NO_APP


async def test_an_app_whose_serve_raises_leaves_its_traceback(zygote):
    files = {"app.py": b"class A:\n    async def serve(self, channel, welcome):\n        raise ValueError('wrong turn')\napp = A()\n"}
    code, log = await _ended(zygote, files)
    assert code is ExitCode.APP_FAILED
    assert "raise ValueError('wrong turn')" in log


async def test_an_app_that_returns_from_serve_ends_well(zygote):
    files = {"app.py": b"class A:\n    async def serve(self, channel, welcome):\n        print('bye', end='')\napp = A()\n"}
    code, log = await _ended(zygote, files)
    assert code is ExitCode.DONE
    assert log == "bye"


async def test_a_frame_that_is_no_welcome_ends_the_guest(zygote):
    ready = await spawn_ready(zygote)
    ready.channel.send({"type": "ping", "n": 1})
    with trio.fail_after(30):
        await ready.channel.drain()
        assert (await ready.process.wait_exited()).code is ExitCode.WIRE_BROKEN
    ready.channel.close()


@pytest.mark.clause("2.6")
async def test_frames_that_come_right_behind_the_source_reach_the_app_in_order(zygote):
    ready = await spawn_ready(zygote)
    captive = Captive(ready)
    send_app(ready.channel, {"app.py": ECHO.encode(), "big.py": b"#" * 700_000})
    for number in range(20):
        ready.channel.send({"type": "attempt", "name": str(number)})
    with trio.fail_after(30):
        await ready.channel.drain()
        answers = [(await captive.next_frame())["text"] for _ in range(20)]
    assert answers == list(range(20))
    await captive.end()


async def test_the_app_sees_its_welcome_and_its_siblings(zygote):
    captive = await capture(zygote, {"app.py": b"import part\n" + ECHO.encode(), "part.py": b"VALUE = 41\n"})
    with trio.fail_after(30):
        assert await captive.ask("part.VALUE + 1") == 42
        assert await captive.ask("welcome.epoch") == "e"
        assert await captive.ask("__import__('inspect').getsource(part)") == "VALUE = 41\n"
    await captive.end()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("__import__('uuid').uuid1().version", 1),
        ("__import__('datetime').datetime.now().astimezone().tzname()", "UTC"),
        ("'é'.encode('cp1252')", b"\xe9"),
        ("'é.com'.encode('idna')", b"xn--9ca.com"),
        ("__import__('hashlib').sha256(b'').hexdigest()[:8]", "e3b0c442"),
        ("__import__('decimal').Decimal(1).__str__()", "1"),
        ("__import__('os.path').path.exists('/etc')", False),
        ("__import__('sys').stdin.read()", ""),
        ("__import__('threading').Event().wait(0.001)", False),
        ("len(__import__('secrets').token_hex(4))", 8),
        ("'platform' in __import__('sys').modules", False),
        ("__import__('gc').isenabled()", True),
    ],
)
async def test_what_an_ordinary_app_does_works_or_answers_like_an_empty_machine(zygote, expression, expected):
    captive = await capture(zygote, {"app.py": ECHO.encode()})
    with trio.fail_after(30):
        assert await captive.ask(expression) == expected
    await captive.end()


@pytest.mark.parametrize("call", ["alarm(1)", "setitimer(0, 1)", "pause()"])
async def test_a_signal_call_that_would_kill_is_an_ordinary_refusal(zygote, call):
    code, log = await _ended(zygote, {"app.py": f"import signal\nsignal.{call}\n".encode()})
    assert code is ExitCode.IMPORT_FAILED
    assert "PermissionError" in log


@pytest.mark.clause("2.10")
async def test_output_becomes_log_frames_of_bounded_size_and_rate(zygote):
    talk = b"import sys, logging\nprint('out')\nsys.stderr.write('err')\nlogging.warning('noted')\nprint('x' * 20000)\n"
    talk += b"for n in range(5000):\n    print('line', n)\n"
    ready = await spawn_ready(zygote)
    send_app(ready.channel, {"app.py": talk + ECHO.encode()})
    texts: list[tuple[str, str]] = []
    with trio.fail_after(30):
        await ready.channel.drain()
        ready.channel.send({"type": "attempt", "name": "1"})
        ready.channel.flush()
        while True:
            frames = await ready.channel.receive()
            texts += [(f["stream"], f["text"]) for f in frames if f["type"] == "log.write"]
            if any(f["type"] == "outcome" for f in frames):
                break
    assert ("stdout", "out\n") in texts
    assert ("stderr", "errWARNING:root:noted\n") in texts
    assert max(len(text.encode()) for _, text in texts) <= MAX_LOG_TEXT_BYTES
    assert sum(len(text.encode()) for _, text in texts) < 80_000
    assert 100 < len(texts) < 600
    await Captive(ready).end()


@pytest.mark.clause("2.10")
async def test_dropped_output_is_counted_and_told(zygote):
    talk = b"def talk():\n    for n in range(5000):\n        print('line', n)\n    return 1\n"
    talk += b"def later():\n    import time\n    time.sleep(0.2)\n    print('again')\n    return 2\n"
    captive = await capture(zygote, {"app.py": talk + ECHO.encode()})
    with trio.fail_after(30):
        assert await captive.ask("talk()") == 1
        assert await captive.ask("later()") == 2
    assert "pieces of output dropped]\nagain\n" in captive.log
    await captive.end()


async def test_an_app_of_the_sdk_runs_in_the_guest(zygote):
    files = {"app.py": b"from lineup_sdk import MiniApp\napp = MiniApp()\n"}
    ready = await spawn_ready(zygote)
    captive = Captive(ready)
    send_app(ready.channel, files)
    with trio.fail_after(30):
        await ready.channel.drain()
        frame = await captive.next_frame()
    assert frame["type"] in {"inbox.subscribe", "lifecycle.started", "tools.subscribe"}
    await captive.end()
