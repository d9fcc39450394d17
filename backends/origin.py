"""The scheme, host and port that connections go to, read from a base URL."""

from typing import NamedTuple, Self
from urllib.parse import urlsplit

from backends.address_policy import PUBLIC, AddressPolicy


class Origin(NamedTuple):
    """The scheme, host and port that connections go to, and the addresses that are allowed."""

    scheme: str
    host: str
    port: int
    reach: AddressPolicy = PUBLIC

    @classmethod
    def parse(cls, base_url: str, reach: AddressPolicy = PUBLIC) -> tuple[Self, str]:
        """Return the origin of a base URL, and its path without a trailing slash.

        Raises `ValueError` for an invalid base URL.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an http(s) base URL: {base_url!r}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("a base URL must not have credentials, a query or a fragment")
        if not base_url.isascii() or any(c <= " " for c in base_url):
            raise ValueError(f"not a plain base URL: {base_url!r}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, reach), parts.path.rstrip("/")

    @property
    def authority(self) -> str:
        """Return the value of the `host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"


def address_key(base_url: str) -> tuple[object, ...]:
    """Return a key that is equal for base URLs with the same destination.

    Case of scheme and host, default ports and trailing slashes do not matter. The key of an invalid
    URL, which the configuration checks report, is its text.
    """
    try:
        origin, path = Origin.parse(base_url)
    except ValueError:
        return (base_url,)
    return (origin.scheme, origin.host, origin.port, path)
