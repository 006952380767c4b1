"""The served half of the web host, made once the kernel is up. All that takes long to import stands behind it (hosts/web/host.py)."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

import trio

from hosts.web.keeper import Keeper
from hosts.web.markdown import Trees
from hosts.web.page_text import PageText
from hosts.web.server import Server
from hosts.web.shared import Shared
from hosts.web.tickets import Tickets
from hosts.web.tokens import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What pages are told of the host. is_loopback: as in Shared."""

    language: str
    is_demo: bool
    is_loopback: bool


def open_front(listening: socket.socket, origins: Mapping[bytes, str], keeper: Keeper, tokens: Tokens, look: Look) -> Server:
    """Return the server of a bound socket. origins: the Host texts that are ours, each with its origin."""
    shared = Shared(
        keeper=keeper,
        text=PageText(Trees()),
        tickets=Tickets(trio.current_time),
        tokens=tokens,
        version=version("lineup-runtime"),
        language=look.language,
        is_demo=look.is_demo,
        is_loopback=look.is_loopback,
    )
    return Server(listening, origins, shared)
