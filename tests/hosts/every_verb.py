"""The `lineup` command with all that its verbs import late, for a warm parent to fork (tests/hosts/lineup.py)."""

import hosts.console
import hosts.demo
import hosts.web.browser
import hosts.web.demo
import hosts.web.front
import hosts.web.host  # noqa: F401
from hosts.cli import main

__all__ = ["main"]
