"""Who may use the server: a token, its cookies, and one-time links."""

import secrets
import time
from hashlib import sha256
from hmac import compare_digest, digest
from threading import Lock

from starlette.datastructures import Headers

LINK_S = 600  # that a one-time link is good for
COOKIE_S = 30 * 24 * 3600
MAX_LINKS = 20


class SessionKeys:
    """The token of a server, its cookies and its one-time codes."""

    def __init__(self, token: str, port: int) -> None:
        self.token = token
        self.cookie = f"mnemic-{port}"  # cookies of all ports of a host are in one jar
        self.codes: dict[str, float] = {}  # hash → when it ends
        self.lock = Lock()

    def make_code(self) -> str:
        """Make a code that can be exchanged for a cookie once."""
        code = secrets.token_urlsafe(16)
        with self.lock:
            while len(self.codes) >= MAX_LINKS:
                self.codes.pop(next(iter(self.codes)))
            self.codes[hash_text(code)] = time.monotonic() + LINK_S
        return code

    def accepts_code(self, code: str) -> bool:
        """Use up a code; return whether it was good."""
        with self.lock:
            end = self.codes.pop(hash_text(code), 0.0)
        return time.monotonic() < end

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
