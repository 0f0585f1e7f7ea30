"""Who may use the server: a token, its cookies, and one-time links."""

import secrets
import socket
import sys
import time
from hashlib import sha256
from hmac import compare_digest, digest
from pathlib import Path
from threading import Lock

from starlette.datastructures import Address, Headers

LINK_S = 600  # that a one-time link is good for
COOKIE_S = 30 * 24 * 3600
MAX_LINKS = 20
ROOT = 0  # who can read everything anyway, and passes connections on
CONNECTIONS = Path("/proc/net/tcp")


class SessionKeys:
    """The token of a server, its cookies and its one-time codes."""

    def __init__(self, token: str, port: int) -> None:
        self.token = token
        self.cookie = f"mnemic-{port}"  # cookies of all ports of a host are in one jar
        self.codes: dict[str, tuple[float, int | None]] = {}  # hash → when it ends, and for whom it is
        self.lock = Lock()

    def make_code(self, user: int | None = None) -> str:
        """Make a code that is good once, for anyone or one user."""
        code = secrets.token_urlsafe(16)
        with self.lock:
            while len(self.codes) >= MAX_LINKS:
                self.codes.pop(next(iter(self.codes)))
            self.codes[hash_text(code)] = (time.monotonic() + LINK_S, user)
        return code

    def accepts_code(self, code: str, user: int | None = None) -> bool:
        """Use up a code; return whether it was good for a user."""
        with self.lock:
            end, owner = self.codes.pop(hash_text(code), (0.0, None))
        return time.monotonic() < end and (owner is None or user in (None, owner, ROOT))

    def accepts_token(self, token: str) -> bool:
        """Return whether this is the token."""
        return compare_digest(hash_text(token), hash_text(self.token))

    def make_cookie(self) -> str:
        """Make the value of a cookie, which is good until a day that it names."""
        end = str(int(time.time()) + COOKIE_S)
        return f"{end}.{self.sign(end)}"

    def accepts_cookie(self, value: str) -> bool:
        """Return whether a cookie was made by this token and has not ended."""
        end, _, signature = value.partition(".")
        is_signed = compare_digest(signature.encode(), self.sign(end).encode())
        return is_signed and end.isdecimal() and time.time() < int(end)

    def sign(self, text: str) -> str:
        """Sign a text with the token."""
        return digest(self.token.encode(), f"session {self.cookie} {text}".encode(), "sha256").hex()

    def has_bearer(self, headers: Headers) -> bool:
        """Return whether a request has the token in its header."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.accepts_token(token.strip())

    def has_cookie(self, cookies: dict[str, str]) -> bool:
        """Return whether a request has a good cookie."""
        return self.accepts_cookie(cookies.get(self.cookie, ""))


def hash_text(text: str) -> str:
    """Hash a text, so that comparing it takes the same time for all."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def find_user(client: Address | None, server: tuple[str, int] | None) -> int | None:
    """Find the user whose program has a connection; None: not known."""
    try:
        ends = [format_address(*address) for address in (client, server) if address]
        rows = [line.split() for line in CONNECTIONS.read_text(encoding="ascii").splitlines()]
    except OSError:  # no such address, or not on Linux
        return None
    return next((int(row[7]) for row in rows if row[1:3] == ends), None)


def format_address(host: str, port: int) -> str:
    """Format an address as the system lists it."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
