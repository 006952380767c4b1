"""Verbs about questions to the person: interactions list, answer (SPEC 7).

Rules:
1. An answer is judged by the kernel; what it refuses names the field.
2. Without an answer on the command line, and with a terminal, the question is asked here: the words on stderr, the answer from stdin.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

import typer

from hosts import console_form
from hosts.commands.setting import FormatOption, Setting, ask, setting_of
from hosts.console_form import Form
from hosts.output import Exit, Failure, Format, message_of, print_note, table, usage, write_data
from hosts.visible import one_line, visible
from kernel.protocol.host_interactions import InteractionAnswer, InteractionsList
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

interactions = typer.Typer(help="Questions and notices to you.", rich_markup_mode=None)

_STATES = ("cancelled", "completed", "ended", "expired", "failed", "open", "pending", "presented", "submitted")
_ASKERS = {"agent_tool": "agent", "runtime_policy": "lineup"}  # all else is the App that owns it
_PAGE = 50
_MAX_PAGES = 20  # more questions than may wait


@interactions.command("list")
def list_interactions(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--state", help="open, ended, or one status.")] = None,
    before: Annotated[int | None, typer.Option("--before", help="Only those older than this number.", min=1)] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=200)] = 50,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """List questions and notices, newest first."""
    if state is not None and state not in _STATES:
        raise usage("no such state", pointer="--state", expected="one of " + ", ".join(_STATES))
    [value] = ask(setting_of(context), InteractionsList(state=state, before=before, limit=limit))
    lines = table([_row(one) for one in value["interactions"]], ("NO", "INTERACTION", "KIND", "FROM", "STATUS", "OUTCOME", "BY", "TITLE"))
    more = [f"(more: --before {value['interactions'][-1]['number']})"] if value["more"] and value["interactions"] else []
    write_data(value, [*lines, *more], chosen)


def _row(one: JsonObject) -> tuple[object, ...]:
    outcome = (one.get("result") or {}).get("outcome")
    title = one_line(str(one["request"]["title"]), 60)
    asker = _ASKERS.get(one["source"], one["owner_app_scope"])
    return (*(one[name] for name in ("number", "interaction_id", "kind")), asker, one["status"], outcome, one.get("answered_by"), title)


def answer(
    context: typer.Context,
    question: Annotated[str | None, typer.Argument(metavar="[ID]", help="Its id or number; not needed while one waits.")] = None,
    choose: Annotated[
        list[str] | None, typer.Option("--choose", help="Of a choice: a number or an id that is offered; again for more.")
    ] = None,
    yes: Annotated[bool | None, typer.Option("--yes/--no", help="Of a confirm.")] = None,
    field: Annotated[list[str] | None, typer.Option("--field", help="Of an input: FIELD=VALUE; again for each.")] = None,
    declined: Annotated[bool, typer.Option("--decline", help="You do not want to answer; of a choice or an input.")] = False,
    chosen: FormatOption = Format.TEXT,
) -> None:
    """Answer a question of the Agent or an app; asks you for what the command line does not say."""
    setting = setting_of(context)
    shown = find([one for one in _those(setting, "open") if one["kind"] != "notice"], question, lambda: _those(setting, "ended"))
    said = given(shown, choose or [], yes, field or [], declined=declined)
    if said is None:
        _require_terminal(shown)
        receipt = ask_person(shown, lambda answer: _send(setting, shown, answer), sys.stdin.readline)
    else:
        receipt = _send(setting, shown, said)
    write_data(receipt, [f"Answered {visible(str(shown['interaction_id']))}."], chosen)


def find(waiting: Sequence[JsonObject], name: str | None, read_ended: Callable[[], Iterable[JsonObject]]) -> JsonObject:
    """The question that is meant: by id or number, or the only one.

    Raises: Failure (usage, interaction_not_found, interaction_already_final when read_ended has it).
    """
    found = [one for one in waiting if name is None or _is_named(one, name)]
    if len(found) == 1:
        return found[0]
    hint = "see `lineup interactions list --state open`"
    if name is None and found:
        raise usage(f"{len(found)} questions wait", pointer="ID", expected="the id or number of one of them", hint=hint)
    if name is not None and any(_is_named(one, name) for one in read_ended()):
        raise Failure(Code.INTERACTION_ALREADY_FINAL, {"pointer": "ID", "hint": "`lineup interactions list` says how it ended"})
    raise Failure(Code.INTERACTION_NOT_FOUND, {"pointer": "ID", "expected": "a question that waits", "hint": hint})


def _is_named(one: JsonObject, name: str) -> bool:
    return name.removeprefix("#") in (str(one["number"]), one["interaction_id"])


def _those(setting: Setting, state: str) -> Iterator[JsonObject]:
    """Those in a state, newest first; of the ended ones only the newest _MAX_PAGES pages."""
    before: int | None = None
    for _ in range(_MAX_PAGES):
        [value] = ask(setting, InteractionsList(state=state, before=before, limit=_PAGE))
        yield from value["interactions"]
        if not value["more"]:
            return
        before = int(value["interactions"][-1]["number"])


def _send(setting: Setting, shown: JsonObject, given: JsonObject) -> JsonObject:
    message = InteractionAnswer(interaction_id=str(shown["interaction_id"]), answer=given, shown_digest=str(shown["shown_digest"]))
    [receipt] = ask(setting, message)
    return receipt


# --- what the command line says


def given(shown: JsonObject, choose: list[str], yes: bool | None, fields: list[str], *, declined: bool) -> JsonObject | None:
    """The answer in the options, or None when there is none. Raises: Failure (usage)."""
    said = {"--choose": bool(choose), "--decline": declined, "--field": bool(fields), "--yes": yes is not None}
    options = [name for name, is_said in said.items() if is_said]
    if not options:
        return None
    fitting = {"choice": ("--choose", "--decline"), "confirm": ("--yes",), "input": ("--field", "--decline")}[str(shown["kind"])]
    if len(options) > 1 or options[0] not in fitting:
        raise usage(f"this is a {shown['kind']}", pointer=options[0], expected="one of " + ", ".join(fitting))
    if declined:
        return {"declined": True}
    if yes is not None:
        return {"approved": yes}
    return (
        {"action_ids": [_action_id(shown, word) for word in choose]} if choose else {"fields": dict(_field(shown, one) for one in fields)}
    )


def _action_id(shown: JsonObject, word: str) -> str:
    actions = shown["request"]["actions"]
    if word in [action["id"] for action in actions]:
        return word
    numbered = console_form.choices_in(shown["request"], word) or []
    if len(numbered) != 1:
        raise usage("no such choice", pointer="--choose", expected=f"a number from 1 to {len(actions)}, or an id that is offered")
    return numbered[0]


def _field(shown: JsonObject, said: str) -> tuple[str, object]:
    ident, equals, text = said.partition("=")
    known = {item["id"]: item for item in shown["request"]["fields"]}
    if not equals or ident not in known:
        expected = "FIELD=VALUE, FIELD one of " + ", ".join(one_line(name, 64) for name in known)
        raise usage("no such field", pointer="--field", expected=expected)
    return ident, console_form.value_of(known[ident], text)


# --- asking at a terminal


def _require_terminal(shown: JsonObject) -> None:
    if not (os.isatty(0) and os.isatty(2)):
        kinds = {"choice": "--choose or --decline", "confirm": "--yes or --no", "input": "--field or --decline"}
        raise usage("say the answer, or use a terminal", pointer="command line", expected=kinds[str(shown["kind"])])


def ask_person(shown: JsonObject, send: Callable[[JsonObject], JsonObject], read_line: Callable[[], str]) -> JsonObject:
    """Ask until the kernel takes the answer; returns its receipt. Raises: Failure (also at the end of input)."""
    for line in _question_text(shown):
        print_note(line)
    form = console_form.open_form(shown)
    while True:
        said = _next_answer(form, read_line)
        if isinstance(said, Form):
            form = said
            continue
        try:
            return send(said)
        except Failure as refused:
            if refused.code != Code.ANSWER_INVALID:
                raise
            form = console_form.refuse(form, refused.code, refused.detail)
            print_note(visible(f"{message_of(refused.code)}: {form.error}"))


def _question_text(shown: JsonObject) -> list[str]:
    request = shown["request"]
    lines = [visible(str(request["title"])), *visible(str(request["prompt"]), keep_newlines=True).split("\n")]
    lines += [f"  {number}  {visible(str(action['label']))}" for number, action in enumerate(request.get("actions", ()), 1)]
    return lines if shown["kind"] == "confirm" else [*lines, "(/decline: you do not want to answer)"]


def _next_answer(form: Form, read_line: Callable[[], str]) -> Form | JsonObject:
    """Ask for the next line; the form it leads to, or the answer that is complete."""
    has_fields = form.kind == "input"
    if has_fields and form.current is None:
        return console_form.take_line(form, "").answer or {"fields": {}}
    sys.stderr.write(console_form.prompt_of(form))
    sys.stderr.flush()
    line = read_line()
    if not line:
        print_note("")
        raise Failure("interrupted_by_person", exit_code=Exit.INTERRUPTED)
    text = line.rstrip("\n")
    if text == "/decline" and console_form.can_decline(form.interaction):
        return {"declined": True}
    taken = console_form.take_line(form, text)
    if taken.answer is None and taken.form.error:
        print_note(taken.form.error)
    return taken.form if taken.answer is None else taken.answer
