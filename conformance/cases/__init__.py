"""Every case of the suite, in order of number. A number that was given once is never given to another case."""

from __future__ import annotations

from dataclasses import replace

from conformance.case import Case
from conformance.cases import asking, calls, garbage, handshake, lifecycle, messages, refusals, signs_of_life, surfaces, traffic

_KINDS = (handshake, signs_of_life, garbage, calls, refusals, messages, lifecycle, surfaces, asking, traffic)


def all_cases() -> tuple[Case, ...]:
    """The cases, each with the kind its file is named for."""
    kinds = {module: module.__name__.rpartition(".")[2].replace("_", " ") for module in _KINDS}
    cases = [replace(case, kind=kinds[module]) for module in _KINDS for case in module.CASES]
    return tuple(sorted(cases, key=lambda case: case.number))
