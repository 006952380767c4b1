"""hosts.lines, hosts.strict_json and hosts.visible."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts.lines import LineReader, LinesClosed, LineTooLong, LineWriter
from hosts.strict_json import JsonRefused, NotJson, read_json, write_json
from hosts.visible import one_line, visible


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    fds = list(os.pipe())
    yield fds
    for fd in fds:
        os.close(fd)


async def _all_lines(reader: LineReader) -> list[bytes | LineTooLong]:
    lines: list[bytes | LineTooLong] = []
    while (line := await reader.read_line()) is not None:
        lines.append(line)
    return lines


async def test_lines_come_whole_from_pieces_and_a_last_one_needs_no_newline(pipe: list[int]) -> None:
    reader = LineReader(pipe[0], 100)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            lines: list[bytes | LineTooLong | None] = []

            async def read() -> None:
                lines.extend([await reader.read_line() for _ in range(3)])

            nursery.start_soon(read)
            for piece in (b"a", b"b\n\nc", b"d\nlast"):
                os.write(pipe[1], piece)
                await trio.testing.wait_all_tasks_blocked()
        os.close(pipe.pop())
        assert lines == [b"ab", b"", b"cd"]
        assert await _all_lines(reader) == [b"last"]


@pytest.mark.clause("2.1")
@pytest.mark.parametrize("length", [11, 200_000])
async def test_a_line_over_the_limit_is_reported_once_and_the_next_is_read(tmp_path: Path, length: int) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 10 + b"\n" + b"y" * length + b"\n" + b"next\n")
    fd = os.open(path, os.O_RDONLY)
    try:
        assert await _all_lines(LineReader(fd, 10)) == [b"x" * 10, LineTooLong(), b"next"]
    finally:
        os.close(fd)


async def test_lines_of_two_tasks_do_not_mix_even_when_the_pipe_is_full(pipe: list[int]) -> None:
    writer, reader = LineWriter(pipe[1]), LineReader(pipe[0], 1_000_000)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.write_line, "a" * 300_000)
            nursery.start_soon(writer.write_line, "b" * 300_000)
            lines = {await reader.read_line(), await reader.read_line()}
    assert lines == {b"a" * 300_000, b"b" * 300_000}


async def test_a_reader_that_is_gone_is_told_to_the_writer(pipe: list[int]) -> None:
    os.close(pipe.pop(0))
    with pytest.raises(LinesClosed):
        await LineWriter(pipe[0]).write_line("x")


@pytest.mark.clause("2.1")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"a":2}', "duplicate_key"),
        ('{"a":{"b":1,"b":1}}', "duplicate_key"),
        ("NaN", "number"),
        ("[Infinity]", "number"),
        ("-Infinity", "number"),
        ("1e400", "number"),
        ("1e300", "number"),
        ("9007199254740992", "integer_range"),
        ("9" * 10_000, "integer_range"),
        ('"\\ud800"', "lone_surrogate"),
        ('{"\\udfff": 1}', "lone_surrogate"),
        ("[" * 16 + "]" * 16, "depth"),
        ("[" * 100_000 + "]" * 100_000, "depth"),
    ],
)
def test_json_that_no_wire_admits_is_refused_with_a_fixed_word(text: str, reason: str) -> None:
    with pytest.raises(JsonRefused) as refused:
        read_json(text)
    assert refused.value.reason == reason


@pytest.mark.clause("2.1")
def test_json_that_the_wire_admits_is_read() -> None:
    text = '{"a":[1,-9007199254740991,1.5,-0.0,true,null,"\\ud83d\\ude00"],"b":' + "[" * 13 + "]" * 13 + "}"
    value = read_json(text)
    assert value["a"] == [1, -9007199254740991, 1.5, 0.0, True, None, "😀"]


@pytest.mark.parametrize("text", ["", "hello", "{", '{"a":}', "[1,]", "'a'", "1 2"])
def test_what_is_no_json_is_told_apart_from_refused_json(text: str) -> None:
    with pytest.raises(NotJson):
        read_json(text)


@settings(deadline=None)
@given(st.text())
def test_written_json_is_one_ascii_line(text: str) -> None:
    line = write_json({"text": text})
    assert line.isascii()
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("a\rb\nc", "a␍b␊c"),
        ("\x7f\x9b", "␡<U+009B>"),
        ("\u202eevil\u2066", "<U+202E>evil<U+2066>"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("line\u2028sep", "line<U+2028>sep"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("a" + "\u0301" * 50, "a" + "\u0301" * 4),
    ],
)
def test_what_could_steer_or_hide_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@settings(deadline=None)
@given(st.text())
def test_no_text_brings_a_control_character_through(text: str) -> None:
    assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in visible(text))
    assert len(one_line("x" * 100 + text, 20)) == 20
