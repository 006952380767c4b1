"""`lineup answer` without a kernel: what the options say, and what is asked at a terminal."""

from __future__ import annotations

import io

import pytest

from hosts import console_form
from hosts.commands import interactions
from hosts.output import Exit, Failure
from lineup_sdk.protocol.messages import JsonObject
from tests.hosts.scripted_kernel import question

FIELDS = [{"id": "name", "label": "Name", "type": "text", "required": True}, {"id": "age", "label": "Age", "type": "number"}]
INPUT = question(21, "input", {"title": "You", "prompt": "Who?", "fields": FIELDS})
CONFIRM = question(22, "confirm", {"title": "Sure?", "prompt": "Go on."})


class Kernel:
    """Takes answers in place of a running kernel."""

    def __init__(self, *refusals: Failure) -> None:
        self.answers: list[JsonObject] = []
        self._refusals = list(refusals)

    def send(self, answer: JsonObject) -> JsonObject:
        self.answers.append(answer)
        if self._refusals:
            raise self._refusals.pop(0)
        return {"accepted": True}


Said = tuple[list[str], bool | None, list[str], bool]  # --choose, --yes, --field, --decline


def given(shown: JsonObject, said: Said) -> JsonObject | None:
    choose, yes, fields, declined = said
    return interactions.given(shown, choose, yes, fields, declined=declined)


@pytest.mark.clause("7.3")
@pytest.mark.parametrize(
    ("shown", "said", "answer"),
    [
        (question(), (["2"], None, [], False), {"action_ids": ["blue"]}),
        (question(), (["blue", "1"], None, [], False), {"action_ids": ["blue", "red"]}),
        (question(), ([], None, [], True), {"declined": True}),
        (question(), ([], None, [], False), None),
        (CONFIRM, ([], True, [], False), {"approved": True}),
        (CONFIRM, ([], False, [], False), {"approved": False}),
        (INPUT, ([], None, ["name=Ada=1", "age=36"], False), {"fields": {"name": "Ada=1", "age": 36}}),
        (INPUT, ([], None, ["age=old"], False), {"fields": {"age": "old"}}),
    ],
)
def test_the_options_are_the_answer_to_what_is_shown(shown: JsonObject, said: Said, answer: JsonObject | None) -> None:
    assert given(shown, said) == answer


@pytest.mark.parametrize(
    ("shown", "said", "pointer"),
    [
        (question(), ([], True, [], False), "--yes"),
        (question(), (["3"], None, [], False), "--choose"),
        (question(), (["1,2"], None, [], False), "--choose"),
        (question(), (["1"], None, [], True), "--choose"),
        (CONFIRM, ([], None, [], True), "--decline"),
        (INPUT, ([], None, ["nobody=1"], False), "--field"),
        (INPUT, ([], None, ["name"], False), "--field"),
    ],
)
def test_options_that_do_not_answer_it_are_a_usage_error(shown: JsonObject, said: Said, pointer: str) -> None:
    with pytest.raises(Failure) as failed:
        given(shown, said)
    assert (failed.value.code, failed.value.detail["pointer"]) == ("usage", pointer)


def test_a_question_is_named_by_number_or_id_or_by_being_the_only_one() -> None:
    both = [question(), CONFIRM]
    assert [interactions.find(both, name, list) for name in ("22", "#22", "int_22")] == [CONFIRM] * 3
    assert interactions.find([CONFIRM], None, list) == CONFIRM
    for waiting, name, code in ((both, None, "usage"), ([], None, "interaction_not_found"), (both, "2", "interaction_not_found")):
        with pytest.raises(Failure) as failed:
            interactions.find(waiting, name, list)
        assert (failed.value.code, failed.value.exit_code) == (code, Exit.USAGE)


@pytest.mark.clause("7.3")
@pytest.mark.parametrize("name", ["22", "#22", "int_22"])
def test_a_question_that_has_ended_is_final_and_not_unknown(name: str) -> None:
    with pytest.raises(Failure) as failed:
        interactions.find([question()], name, lambda: [CONFIRM])
    assert (failed.value.code, failed.value.exit_code) == ("interaction_already_final", Exit.CONFLICT)


def ask_person(shown: JsonObject, typed: str, *refusals: Failure) -> Kernel:
    kernel = Kernel(*refusals)
    assert interactions.ask_person(shown, kernel.send, io.StringIO(typed).readline) == {"accepted": True}
    return kernel


@pytest.mark.clause("7.3")
def test_at_a_terminal_fields_are_asked_one_by_one_and_the_refused_one_again(capsys: pytest.CaptureFixture[str]) -> None:
    refused = Failure("answer_invalid", {"pointer": "/answer/fields/age", "expected": "number"})
    kernel = ask_person(INPUT, "Ada\nold\n36\n", refused)
    assert kernel.answers == [{"fields": {"name": "Ada", "age": "old"}}, {"fields": {"name": "Ada", "age": 36}}]
    captured = capsys.readouterr()
    assert "expected number" in captured.err
    assert captured.out == "", "what is asked is not data"


@pytest.mark.parametrize(
    ("shown", "typed", "answer"),
    [
        (question(), "x\n2\n", {"action_ids": ["blue"]}),
        (question(), "/decline\n", {"declined": True}),
        (CONFIRM, "?\ny\n", {"approved": True}),
    ],
)
def test_at_a_terminal_a_choice_and_a_confirm_are_asked_until_they_are_answered(shown: JsonObject, typed: str, answer: JsonObject) -> None:
    assert ask_person(shown, typed).answers == [answer]


def test_the_end_of_input_while_asking_interrupts_and_another_refusal_ends_it() -> None:
    for typed, refusals, code in (
        ("", (), "interrupted_by_person"),
        ("y\n", (Failure("interaction_already_final"),), "interaction_already_final"),
    ):
        with pytest.raises(Failure) as failed:
            ask_person(CONFIRM, typed, *refusals)
        assert failed.value.code == code


def test_a_form_goes_back_to_the_first_field_and_no_further() -> None:
    form = console_form.take_line(console_form.open_form(INPUT), "Ada").form
    assert console_form.back(console_form.back(form)).position == 0
