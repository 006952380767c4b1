"""The small parts of the web host, each alone: tickets, tokens, pace, addresses, places, headers."""

from __future__ import annotations

import stat
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

import pytest
import trio
import trio.testing

from hosts.homes import Home, language_of
from hosts.web.address import (
    KEPT_PLACES,
    AddressRefused,
    Place,
    in_own_networks,
    keep_place,
    listen,
    names_of,
    parse_address,
    read_places,
)
from hosts.web.half_lines import MAX_TABS, HalfLines
from hosts.web.headers import artifact_headers
from hosts.web.pace import BURST, MAX_WAITING, MESSAGES_A_SECOND, STRIKES, Outbox, Pace, TooSlow
from hosts.web.page_jobs import Mount, Mounts
from hosts.web.page_providers import PageProviders
from hosts.web.tickets import MAX_BYTES, MAX_TICKETS, TICKET_SECONDS, Content, Tickets
from hosts.web.tokens import MAX_OPENINGS, OPENING_SECONDS, Tokens
from kernel.protocol.host_capabilities import CapabilityExecute, ProviderResult
from kernel.protocol.host_surfaces import SurfacePatched, SurfaceUnmounted
from lineup_sdk.protocol.messages import JsonObject


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def content(size: int = 1) -> Content:
    return Content(body=b"x" * size, headers={})


# --- tickets


def test_a_ticket_is_good_once_and_for_its_own_path_only(clock: Clock) -> None:
    tickets = Tickets(clock)
    kept = content()
    path = tickets.issue("/s/", kept)
    assert len(path) == len("/s/") + 32
    assert tickets.take(path.replace("/s/", "/a/")) is None
    assert tickets.take(path) is kept
    assert tickets.take(path) is None


def test_a_ticket_that_waits_too_long_is_gone(clock: Clock) -> None:
    tickets = Tickets(clock)
    early = tickets.issue("/a/", content())
    clock.seconds = TICKET_SECONDS
    late = tickets.issue("/a/", content())
    clock.seconds += 0.1
    assert tickets.take(early) is None
    assert tickets.take(late) is not None


def test_tickets_are_bounded_in_number_and_bytes_and_the_oldest_go(clock: Clock) -> None:
    tickets = Tickets(clock)
    paths = [tickets.issue("/a/", content()) for _ in range(MAX_TICKETS + 1)]
    assert tickets.take(paths[0]) is None
    assert tickets.take(paths[1]) is not None
    big = [tickets.issue("/a/", content(MAX_BYTES // 2)) for _ in range(3)]
    assert [tickets.take(path) is not None for path in big] == [False, True, True]


# --- tokens


def test_the_lasting_token_opens_always_and_an_opening_one_once_and_soon(clock: Clock) -> None:
    tokens = Tokens("lasting", clock)
    first, second = tokens.opening(), tokens.opening()
    assert [tokens.admit(shown) for shown in ("lasting", "lasting", "", "LASTING", "lasting ")] == [True, True, False, False, False]
    assert [tokens.admit(first), tokens.admit(first)] == [True, False]
    clock.seconds = OPENING_SECONDS + 1
    assert not tokens.admit(second)


def test_openings_are_bounded(clock: Clock) -> None:
    tokens = Tokens("lasting", clock)
    made = [tokens.opening() for _ in range(MAX_OPENINGS + 1)]
    assert [tokens.admit(made[0]), tokens.admit(made[-1])] == [False, True]


# --- mounts


def test_what_the_kernel_says_of_a_mount_is_for_that_one_and_no_other_of_the_surface() -> None:
    told: list[JsonObject] = []
    mounts = Mounts(told.append)
    mounts.open = {name: Mount(name, "surface", epoch) for epoch, name in enumerate(("old", "new"), 1)}
    for epoch in (1, 2, 3):
        mounts.patched(SurfacePatched(surface_id="surface", mount_epoch=epoch, version=7, patch={"of": epoch}))
    mounts.patched(SurfacePatched(surface_id="another", mount_epoch=1, version=7, patch={}))
    mounts.ended(SurfaceUnmounted(surface_id="surface", mount_epoch=1, reason="taken_over"))
    assert [(one["op"], one["mount"]) for one in told] == [
        ("surface.patched", "old"),
        ("surface.patched", "new"),
        ("surface.unmounted", "old"),
    ]
    assert [one.get("patch") for one in told] == [{"of": 1}, {"of": 2}, None]
    assert list(mounts.open) == ["new"]


# --- providers


@pytest.mark.invariant("52")
@pytest.mark.parametrize(("bytes_now", "ended"), [(b"other bytes!", "bytes_lost"), (b"short", "bytes_lost"), (b"kept bytes!!", None)])
async def test_only_the_bytes_that_were_granted_are_handed_to_a_page(clock: Clock, bytes_now: bytes, ended: str | None) -> None:
    told: list[JsonObject] = []
    page = PageProviders(told.append, Tickets(clock))
    granted = b"kept bytes!!"
    arguments = {"artifact_id": "a", "name": "a.txt", "size": len(granted), "sha256": sha256(granted).hexdigest()}
    labels = {"app_scope": "scribe", "title": "Scribe"}
    execute = CapabilityExecute(request_id="r", capability="artifact.save", arguments=arguments, deadline_ms=60_000, **labels)

    async def read(_: str) -> bytes:
        return bytes_now

    async with trio.open_nursery() as nursery:
        results: list[ProviderResult] = []

        async def run() -> None:
            results.append(await page.all().run(execute, read))

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        page.provided("r", None)
    assert results[0].reason == ended
    assert [one["op"] for one in told] == (["execute"] if ended is None else [])


# --- pace


def test_a_burst_is_taken_then_only_so_many_a_second_and_the_rest_are_strikes() -> None:
    pace = Pace(0.0)
    assert all(pace.take(0.0) for _ in range(BURST))
    assert not pace.take(0.0)
    assert [pace.take(1.0) for _ in range(MESSAGES_A_SECOND + 1)] == [True] * MESSAGES_A_SECOND + [False]
    for _ in range(STRIKES):
        pace.take(1.0)
    assert pace.is_out


async def test_a_page_that_does_not_take_what_it_is_sent_is_cut_and_nothing_is_kept_for_it() -> None:
    outbox = Outbox()
    for _ in range(MAX_WAITING):
        outbox.put("a")
    assert await outbox.next() == "a"
    outbox.put("a")
    outbox.put("one too many")
    with pytest.raises(TooSlow):
        await outbox.next()
    outbox.put("after the end")
    with pytest.raises(TooSlow):
        await outbox.next()


async def test_the_outbox_tells_when_the_last_was_dealt_with() -> None:
    outbox, taken = Outbox(), []

    async def take() -> None:
        while True:
            taken.append(await outbox.next())

    outbox.put("a")
    outbox.put("b")
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await outbox.wait_done()
            nursery.cancel_scope.cancel()
    assert taken == ["a", "b"]


# --- addresses


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "0.0.0.0", "::", "192.168.1.5", "10.0.0.1", "fd00::1", "169.254.1.1"])
def test_addresses_of_ones_own_are_taken(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    "text", ["", "localhost", "8.8.8.8", "2001:4860:4860::8888", "127.1", "2130706433", "224.0.0.1", "fe80::1%eth0", "1.2.3.4:5"]
)
def test_names_and_public_addresses_are_refused(text: str) -> None:
    with pytest.raises(AddressRefused):
        parse_address(text)


def test_a_host_is_called_by_its_address_and_the_unspecified_one_is_never_said() -> None:
    plain = names_of(ip_address("127.0.0.1"), 5)
    assert (plain.origins, plain.said, plain.is_loopback) == ({b"127.0.0.1:5": "http://127.0.0.1:5"}, "http://127.0.0.1:5", True)
    assert names_of(ip_address("::1"), 5).origins == {b"[::1]:5": "http://[::1]:5"}
    assert not names_of(ip_address("192.168.1.5"), 5).is_loopback
    for text in ("0.0.0.0", "::"):
        every = names_of(ip_address(text), 5)
        assert every.said in ("http://127.0.0.1:5", "http://[::1]:5")
        assert not any(name.startswith((b"0.0.0.0", b"[::]")) for name in every.origins)


def test_a_public_address_of_this_machine_is_no_name_of_a_host_that_listens_everywhere() -> None:
    found = [ip_address(text) for text in ("192.168.1.5", "8.8.8.8", "127.0.0.1", "10.0.0.9", "fd00::2", "2001:4860:4860::8888", "::1")]
    assert [str(one) for one in in_own_networks(found, 4)] == ["10.0.0.9", "192.168.1.5"]
    assert [str(one) for one in in_own_networks(found, 6)] == ["fd00::2"]


@pytest.mark.invariant("30")
def test_half_lines_are_kept_by_tab_in_bounds_and_an_empty_one_is_forgotten() -> None:
    lines = HalfLines()
    for number in range(MAX_TABS + 1):
        lines.keep(str(number), f"line {number}")
    assert (lines.of("0"), lines.of("1"), lines.of(str(MAX_TABS))) == ("", "line 1", f"line {MAX_TABS}")
    lines.keep("1", "")
    assert lines.of("1") == ""


def test_places_are_kept_for_the_person_alone_and_tried_first(tmp_path: Path) -> None:
    home = Home(tmp_path)
    address = ip_address("127.0.0.1")
    assert read_places(home) == []
    with listen(address, []) as first:
        port = first.getsockname()[1]
        place = keep_place(home, [], port)
        assert read_places(home) == [place]
        assert stat.S_IMODE(home.web_file.stat().st_mode) == 0o600
        with listen(address, [place]) as second:
            other = keep_place(home, [place], second.getsockname()[1])
            assert other.port != port
    assert read_places(home) == [place, other]
    assert keep_place(home, read_places(home), port) == place
    with listen(address, read_places(home)) as again:
        assert again.getsockname()[1] == port


def test_places_are_few_and_a_file_that_says_something_else_counts_as_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for port in range(1, 8):
        keep_place(home, read_places(home), port)
    assert [place.port for place in read_places(home)] == list(range(4, 8))
    assert len(read_places(home)) == KEPT_PLACES
    good = Place(4, "A" * 43)
    home.web_file.write_bytes(b"\xff\xff\n99999 " + b"A" * 43 + b"\n4 short\n4 " + b"A" * 43 + b"\n")
    assert read_places(home) == [good]
    home.web_file.unlink()
    home.web_file.symlink_to("/etc/passwd")
    assert read_places(home) == []


def test_an_address_that_is_not_this_machines_is_refused() -> None:
    with pytest.raises(AddressRefused):
        listen(ip_address("10.255.255.1"), [])


# --- the rest


def test_a_file_name_of_an_app_cannot_end_its_header() -> None:
    header = artifact_headers("application/octet-stream", 'a"; b\r\nSet-Cookie: x/é')["Content-Disposition"]
    assert header == "attachment; filename*=UTF-8''a%22%3B%20b%0D%0ASet-Cookie%3A%20x%2F%C3%A9"


@pytest.mark.parametrize(
    ("environ", "language"),
    [({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "zh_CN", "LC_ALL": "C"}, "en"), ({"LC_MESSAGES": "zh_TW"}, "zh")],
)
def test_the_language_is_that_of_the_persons_programs(environ: dict[str, str], language: str) -> None:
    assert language_of(environ) == language
