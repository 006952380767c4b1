"""Steps of the model without hypothesis: whoever wants a run from one number (tests/faults) draws rules and arguments here."""

from __future__ import annotations

import random
from typing import Any

from hypothesis.strategies._internal.core import PermutationStrategy

from tests.model.test_model import Anything

_RULES = sorted(Anything.setup_state().rules, key=lambda rule: rule.function.__name__)
RULE_NAMES = tuple(rule.function.__name__ for rule in _RULES)


def _draw(strategy: Any, chance: random.Random) -> Any:
    """One value, of the few kinds of strategy that the model's rules have."""
    strategy = getattr(strategy, "wrapped_strategy", strategy)
    if isinstance(strategy, PermutationStrategy):
        return chance.sample(strategy.values, len(strategy.values))
    if hasattr(strategy, "elements"):
        return chance.choice(strategy.elements)
    if hasattr(strategy, "start"):
        return chance.randint(strategy.start, strategy.end)
    assert type(strategy).__name__ == "BooleansStrategy", f"a kind of strategy that is not known here: {strategy}"
    return chance.random() < 0.5


def draw_step(chance: random.Random, without: frozenset[str] = frozenset()) -> tuple[str, dict[str, Any]]:
    """A rule, by name, that is none of these, and its arguments."""
    rule = chance.choice([one for one in _RULES if one.function.__name__ not in without])
    return rule.function.__name__, {name: _draw(one, chance) for name, one in rule.arguments_strategies.items()}


def step(machine: Anything, chance: random.Random, without: frozenset[str] = frozenset()) -> None:
    """One step of anybody, by another rule than these."""
    name, arguments = draw_step(chance, without)
    getattr(machine, name)(**arguments)
