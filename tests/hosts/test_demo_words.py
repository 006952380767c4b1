"""The demo Agent's words: whole in each language, and spoken in the one it was started with."""

from __future__ import annotations

import dataclasses
import io
import json
import re

import pytest

from hosts.agents.demo_speech import DoorGone
from hosts.agents.demo_talk import Talk
from hosts.agents.demo_words import EN, KNOWN_WORDS, LANGUAGES, ZH, Words

TEXTS = [field.name for field in dataclasses.fields(Words) if field.name not in {"actions", "after_choice"}]
OPEN = {"door": "open", "conversation_id": "c"}
INVENTORY = {
    "type": "lineup.v1.client.inventory",
    "message_id": "m0",
    "payload": {"inventory_revision": "r.1", "tools": [{"id": "interaction.choice"}]},
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_is_there_in_both_languages_and_is_filled_in_alike(name: str) -> None:
    english, chinese = getattr(EN, name), getattr(ZH, name)
    assert re.findall(r"\{\w+\}", english) == re.findall(r"\{\w+\}", chinese)
    assert re.search(r"[A-Za-z]", english)
    assert re.search(r"[\u4e00-\u9fff]", chinese)


def test_the_question_has_the_same_answers_in_both_languages_and_each_is_answered() -> None:
    ids = [action["id"] for action in EN.actions]
    assert [action["id"] for action in ZH.actions] == ids
    assert [set(action) for action in EN.actions] == [set(action) for action in ZH.actions]
    assert list(EN.after_choice) == list(ZH.after_choice) == ids


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_speaks_as_it_was_started_and_knows_words_of_both(language: str) -> None:
    words = LANGUAGES[language]
    said = [
        {"type": "lineup.v1.message.text", "message_id": f"m{n}", "payload": {"text": text}} for n, text in enumerate(("help", "帮助。"), 1)
    ]
    source = io.StringIO("".join(json.dumps(line) + "\n" for line in (OPEN, INVENTORY, *said)))
    sink = io.StringIO()
    with pytest.raises(DoorGone):
        Talk(source, sink, words).run()
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line["payload"]["text"] for line in lines if line["type"] == "lineup.v1.message.text"] == [
        words.greeting,
        words.help,
        words.help,
    ]
    assert next(line for line in lines if line["type"] == "lineup.v1.tool.call")["payload"]["input"]["title"] == words.question_title
    assert {"ask", "board", "help", "task"} == set(KNOWN_WORDS.values())
