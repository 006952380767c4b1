"""Test a MiniApp alone: FakeKernel is a kernel of one instance, in the test's own process, over a real socket and the real channel.

    async with FakeKernel(app_file("app.py"), manifest=manifest) as kernel:
        call = await kernel.call("greeter.greet", {"name": "Ada"})
        assert await call.result() == {"text": "Hello, Ada"}

It refuses what the kernel refuses and ends the app on a broken wire. It is not a sandbox: code that tries to reach files or the
network is stopped only by the real process.
"""

from __future__ import annotations

from lineup_sdk.testing.kernel import FakeKernel, ManifestMismatch
from lineup_sdk.testing.life import AppEnded
from lineup_sdk.testing.loading import app_file
from lineup_sdk.testing.questions import FakeQuestion
from lineup_sdk.testing.records import CallNotCompleted, FakeCall, FakeCapabilityRequest, FakeMessage, Outcome

__all__ = [
    "AppEnded",
    "CallNotCompleted",
    "FakeCall",
    "FakeCapabilityRequest",
    "FakeKernel",
    "FakeMessage",
    "FakeQuestion",
    "ManifestMismatch",
    "Outcome",
    "app_file",
]
