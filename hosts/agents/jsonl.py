"""The Agent's door as NDJSON: one lineup.v1 envelope a line, in on stdin, out on stdout (SPEC 11). `lineup agent` is this.

Rules:
1. What a line is, stands in agent_lines.py. The note `text` gives the message_id made for plain text, `refused` what was not sent.
2. A row is acknowledged to the kernel only after its line was written: an Agent that dies before reading it gets it again.
3. After a kernel restart the door attaches again and resends nothing: rows come again from the kernel by themselves, and the note
   `lost` names the messages whose receipt never came. Sending the same bytes again is safe (SPEC 11.2).
4. At the end of stdin the door waits until every accepted call has its result line, then ends.
Notes are JSON lines beside the envelopes: {"door": open | receipt | text | refused | lost | closed, ...}.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import trio

from hosts.agents.agent_lines import LineRefused, Stamps, call_id_of, read_envelope
from hosts.lines import LineReader, LineTooLong, LineWriter
from hosts.link import Event, HostLink, LinkLost, Refused, hello
from hosts.strict_json import write_json
from hosts.view import Attaching
from kernel.protocol.agent import TOOL_RESULT
from kernel.protocol.host import EnvelopeReceipt, EnvelopeSent, EnvelopeSubmit, Goodbye, OutboxAcknowledge
from lineup_sdk.protocol.codes import Code

MAX_LINE_BYTES = 1024 * 1024
MAX_UNANSWERED = 256
MAX_UNANSWERED_BYTES = 4 * 1024 * 1024
REFUSED_ROW_SECONDS = 2.0  # how long a refused call is given to bring its refusal row, at the end of stdin

_COME_BACK = frozenset({Code.LIMIT_EXCEEDED, Code.PROTOCOL_VIOLATION})


class DoorClosed(Exception):
    """The kernel ended this door on purpose."""

    def __init__(self, farewell: Goodbye) -> None:
        super().__init__(farewell.code)
        self.code = farewell.code
        self.detail = farewell.detail or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    message_id: str
    call_id: str | None
    size: int


class Door:
    """See the head of the file. Owns no descriptor."""

    def __init__(
        self, launcher: Attaching, source: LineReader, sink: LineWriter, notes: LineWriter, stamps: Stamps, *, is_demo: bool = False
    ) -> None:
        self._launcher = launcher
        self._source = source
        self._sink = sink
        self._notes = notes
        self._stamps = stamps
        self._hello = hello("agent", label="jsonl", demo=is_demo)
        self._link: HostLink | None = None
        self._has_opened = False
        self._changed = trio.Event()
        # what is not settled yet, for the window and for the end of stdin
        self._unanswered: deque[_Submitted] = deque()
        self._open_calls: set[str] = set()
        self._refused_calls: set[str] = set()

    async def run(self, *, wait_for_results: bool = True) -> None:
        """Serve until stdin ended and what it asked for is settled.

        Raises: KernelUnreachable, Refused (door_busy), DoorClosed, LinesClosed (nobody reads the output); in an exception group.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_link, nursery)
            await self._read_lines()
            await self._wait_settled(wait_for_results=wait_for_results)
            nursery.cancel_scope.cancel()

    # --- kernel -> Agent

    async def _keep_link(self, nursery: trio.Nursery) -> None:
        while True:
            link = await self._launcher.attach(nursery, self._hello)
            welcome = link.welcome
            await self._note("open", conversation_id=welcome.conversation_id, revision=welcome.revision, epoch=welcome.epoch)
            self._link, self._has_opened = link, True
            self._tell()
            try:
                async for event in link.events:
                    await self._pass_on(link, event)
                    self._tell()
            finally:
                self._link = None
                link.close()
            await self._note_lost()
            if link.farewell is not None and link.farewell.code not in _COME_BACK:
                await self._note("closed", code=link.farewell.code, detail=link.farewell.detail or {})
                raise DoorClosed(link.farewell)

    async def _pass_on(self, link: HostLink, event: Event) -> None:
        match event:
            case EnvelopeSent(envelope=envelope):
                await self._sink.write_line(write_json(envelope))
                if envelope.get("type") == TOOL_RESULT:
                    self._settle_call(str(envelope.get("payload", {}).get("call_id")))
                try:
                    link.send(OutboxAcknowledge(message_id=str(envelope.get("message_id"))))
                except LinkLost:
                    return  # the row comes again on the next link
            case EnvelopeReceipt():
                detail = {"code": event.code, "detail": event.detail}
                known = {key: value for key, value in detail.items() if value is not None}
                await self._note("receipt", message_id=event.message_id, accepted=event.accepted, **known)
                self._settle_receipt(event)  # only now: what is settled may end the door, and the note must be out by then
            case _:
                pass  # snapshots and deltas go to views

    def _settle_call(self, call_id: str) -> None:
        self._open_calls.discard(call_id)
        self._refused_calls.discard(call_id)

    def _settle_receipt(self, receipt: EnvelopeReceipt) -> None:
        submitted = next((entry for entry in self._unanswered if receipt.message_id in (entry.message_id, None)), None)
        if submitted is None:
            return
        self._unanswered.remove(submitted)
        if submitted.call_id is not None and not receipt.accepted:
            self._open_calls.discard(submitted.call_id)
            self._refused_calls.add(submitted.call_id)

    async def _note_lost(self) -> None:
        lost = [entry.message_id for entry in self._unanswered]
        self._open_calls -= {entry.call_id for entry in self._unanswered if entry.call_id is not None}
        self._unanswered.clear()
        self._tell()
        await self._note("lost", unanswered=lost)

    # --- Agent -> kernel

    async def _read_lines(self) -> None:
        number = 0
        while (line := await self._source.read_line()) is not None:
            number += 1
            try:
                if isinstance(line, LineTooLong):
                    raise LineRefused(Code.LIMIT_EXCEEDED, {"pointer": "", "expected": f"a line of at most {MAX_LINE_BYTES} bytes"})
                if line.strip():
                    await self._submit(line, number)
            except LineRefused as refusal:
                await self._note("refused", line=number, code=refusal.code, detail=refusal.detail)

    async def _submit(self, line: bytes, number: int) -> None:
        link = await self._wait_room()
        envelope, is_text = read_envelope(line, link.welcome.conversation_id, self._stamps)
        submitted = _Submitted(message_id=envelope["message_id"], call_id=call_id_of(envelope), size=len(line))
        try:
            link.send(EnvelopeSubmit(envelope=envelope))
        except LinkLost:
            await self._note("lost", unanswered=[submitted.message_id])
            return
        except Refused as refusal:
            raise LineRefused(refusal.code, refusal.detail) from refusal
        self._unanswered.append(submitted)
        if submitted.call_id is not None:
            self._open_calls.add(submitted.call_id)
        if is_text:
            await self._note("text", line=number, message_id=submitted.message_id)

    async def _wait_room(self) -> HostLink:
        """Wait for a link with room in the window; a slow kernel slows the Agent, it never fills memory."""
        while True:
            waiting_bytes = sum(entry.size for entry in self._unanswered)
            if self._link is not None and len(self._unanswered) < MAX_UNANSWERED and waiting_bytes < MAX_UNANSWERED_BYTES:
                return self._link
            await self._changed.wait()

    async def _wait_settled(self, *, wait_for_results: bool) -> None:
        while not self._has_opened:  # an Agent that says nothing still learns whether the door takes it
            await self._changed.wait()
        while self._unanswered or (wait_for_results and self._open_calls):
            await self._changed.wait()
        with trio.move_on_after(REFUSED_ROW_SECONDS):
            while wait_for_results and self._refused_calls:
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _note(self, word: str, **fields: object) -> None:
        await self._notes.write_line(write_json({"door": word, **fields}))
