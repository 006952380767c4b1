"""What the zygote does once before it forks."""

from __future__ import annotations

import threading

from tests.descriptors import open_descriptors
from workers.launcher import warming


def test_a_life_in_the_zygote_leaves_no_descriptor_and_no_thread() -> None:
    warming.warm()  # what is opened once a process, by libraries too, is open now
    before = (open_descriptors(), threading.active_count())
    warming.warm()
    assert (open_descriptors(), threading.active_count()) == before
