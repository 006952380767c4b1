"""Where the web host listens, under which names it may be called, and what it remembers of both in the home.

Rules:
1. Only an address of this machine or its own network is bound; a public one is refused, a name is no address.
2. A request is taken under the exact text `address:port` and no other: no name can be rebound to us, none is built from a request.
3. 0.0.0.0 and :: are bound on request and never said: what is said is the loopback, and the addresses this machine has in its own
   networks. Under a public one that it has besides nothing is answered.
4. The last ports are tried first, each with its own token, so that an open page finds us again. The file is the person's alone (0600).
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

import psutil

from hosts.homes import Home

LOOPBACK = "127.0.0.1"
KEPT_PLACES = 4
BACKLOG = 64
_TOKEN_BYTES = 32
_LINE = re.compile(r"([0-9]{1,5}) ([A-Za-z0-9_-]{43})")

Address = IPv4Address | IPv6Address


class AddressRefused(Exception):
    """Not an address this host listens on. `hint` says what is."""

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Place:
    """A port of ours and the token of the pages there."""

    port: int
    token: str


@dataclass(frozen=True, slots=True)
class Names:
    """Under which Host a request is taken, with the origin of its pages; `said` is the one to tell the person."""

    origins: Mapping[bytes, str]
    said: str
    is_loopback: bool


def parse_address(text: str) -> Address:
    """Return the address to bind. Raises: AddressRefused."""
    try:
        address = ip_address(text)
    except ValueError as error:
        raise AddressRefused("an IP address, such as 127.0.0.1 or one of your own network") from error
    own = address.is_loopback or address.is_private or address.is_unspecified
    if not own or address.is_multicast or (isinstance(address, IPv6Address) and address.scope_id):
        raise AddressRefused("an address of this machine in a network you trust; it is never offered to the public network")
    return address


def listen(address: Address, remembered: Sequence[Place]) -> socket.socket:
    """Bind the first remembered port that is free, else any. Raises: AddressRefused when the address is not this machine's."""
    for port in (*(place.port for place in remembered), 0):
        sock = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if address.version == 6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((str(address), port))
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            if port == 0:
                raise AddressRefused(f"an address of this machine ({os.strerror(error.errno or 0)})") from error
        else:
            sock.setblocking(False)
            return sock
    raise AssertionError("port 0 either binds or raises")


def names_of(address: Address, port: int) -> Names:
    """Return the names a host on this address is called by."""
    own: list[Address] = [address]
    if address.is_unspecified:
        own = [ip_address(LOOPBACK if address.version == 4 else "::1"), *_addresses_of_machine(address.version)]
    hosts = [f"[{one}]:{port}" if one.version == 6 else f"{one}:{port}" for one in own]
    return Names({host.encode(): f"http://{host}" for host in hosts}, f"http://{hosts[0]}", own[0].is_loopback and len(own) == 1)


def _addresses_of_machine(version: int) -> list[Address]:
    found: set[Address] = set()
    for entries in psutil.net_if_addrs().values():
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6) and "%" not in entry.address:
                found.add(ip_address(entry.address))
    return in_own_networks(found, version)


def in_own_networks(found: Collection[Address], version: int) -> list[Address]:
    """Return those addresses that a network of the machine's own can reach it by, in their order (rule 3)."""
    return sorted((one for one in found if one.version == version and one.is_private and not one.is_loopback), key=int)


def read_places(home: Home) -> list[Place]:
    """Return the ports used before, those to be tried first at the head; a file that says something else counts as none."""
    try:
        file = os.open(home.web_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(file, encoding="ascii", errors="replace") as opened:
        lines = opened.read(4096).splitlines()
    found = [_LINE.fullmatch(line) for line in lines]
    return [Place(int(match[1]), match[2]) for match in found if match and 0 < int(match[1]) < 65536][:KEPT_PLACES]


def keep_place(home: Home, remembered: Sequence[Place], port: int) -> Place:
    """Return the place of a port that was bound, and remember a new one after those that were busy."""
    known = next((place for place in remembered if place.port == port), None)
    if known is not None:
        return known
    new = Place(port, secrets.token_urlsafe(_TOKEN_BYTES))
    kept = [*remembered, new][-KEPT_PLACES:]
    beside = home.web_file.with_name(f"{home.web_file.name}.{os.getpid()}")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="ascii") as opened:
        opened.write("".join(f"{place.port} {place.token}\n" for place in kept))
    beside.replace(home.web_file)
    return new
