"""Package sources from pip's configuration, for uv and for Pythons without pip.

uv does not read pip's configuration, and a Debian Python may have no pip to read it. This module
reads index, extra indexes, find-links, certificate and trusted hosts from pip's files and PIP_*
variables, and passes them on. Searching all sources at once is safe, because every installed file
is checked against a locked hash.
"""

import configparser
import hashlib
import html.parser
import os
import re
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Places:
    """The package sources of pip's configuration; an empty value means pip's own default."""

    index: str = ""
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    certificate: str = ""
    trusted: tuple[str, ...] = ()

    def uv_arguments(self, environ: Mapping[str, str]) -> list[str]:
        """Return options for `uv pip install`. The user's own UV_* variables take precedence."""
        arguments = ["--index-strategy", "unsafe-best-match"]
        if self.index and not {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & environ.keys():
            arguments += ["--default-index", self.index]
        if not {"UV_INDEX", "UV_EXTRA_INDEX_URL"} & environ.keys():
            arguments += [word for each in self.extra for word in ("--index", each)]
        arguments += [word for each in self.find_links for word in ("--find-links", each)]
        arguments += [word for each in self.trusted for word in ("--allow-insecure-host", each)]
        return arguments

    def uv_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        if self.certificate and "SSL_CERT_FILE" not in environ:
            return {"SSL_CERT_FILE": self.certificate}
        return {}


def configured(environ: Mapping[str, str], *, home: Path, machine: Path = Path("/etc")) -> Places:
    """Read the configuration in pip's order: machine, user, named file, then variables."""
    values: dict[str, str] = {}
    if environ.get("PIP_CONFIG_FILE") != os.devnull:
        config_home = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        files = [
            machine / "xdg" / "pip" / "pip.conf",
            machine / "pip.conf",
            home / ".pip" / "pip.conf",
            config_home / "pip" / "pip.conf",
            Path(environ.get("PIP_CONFIG_FILE") or os.devnull),
        ]
        for path in files:
            values |= read_file(path)
    for key in ("index-url", "extra-index-url", "find-links", "cert", "trusted-host"):
        variable = environ.get("PIP_" + key.upper().replace("-", "_"))
        if variable:
            values[key] = variable
    return Places(
        index=values.get("index-url", ""),
        extra=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        certificate=values.get("cert", ""),
        trusted=tuple(values.get("trusted-host", "").split()),
    )


def read_file(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}
    merged: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            merged |= dict(parser.items(section))
    return merged


class Links(html.parser.HTMLParser):
    """A parser that collects the addresses on a simple-index or find-links page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for key, value in attrs if key == "href" and value]


def fetch_wheel(places: Places, lock: str, name: str, folder: Path) -> Path | None:
    """Download a pure-Python wheel with a locked hash. Return its path, or `None`."""
    blocks = re.split(r"\n(?=\S)", lock)
    block = next((each for each in blocks if each.startswith(f"{name}==")), "")
    hashes = set(re.findall(r"sha256:([0-9a-f]{64})", block))
    pages = [f"{index.rstrip('/')}/{name}/" for index in (places.index, *places.extra) if index]
    context = ssl.create_default_context(cafile=places.certificate or None)
    for page in [*pages, *places.find_links]:
        for address in wheels_at(page, name, context):
            content = read_address(address, context)
            if content and hashlib.sha256(content).hexdigest() in hashes:
                folder.mkdir(parents=True, exist_ok=True)
                file_name = urllib.parse.urlsplit(address).path.rpartition("/")[2]
                path = folder / urllib.parse.unquote(file_name)
                path.write_bytes(content)
                return path
    return None


def wheels_at(page: str, name: str, context: ssl.SSLContext) -> list[str]:
    """Return the addresses of a package's pure-Python wheels on a page or in a folder.

    A page yields at most five, last first: the newest, if the page is sorted by version.
    """
    if "://" not in page or page.startswith("file://"):
        folder = Path(urllib.parse.unquote(urllib.parse.urlsplit(page).path))
        return [path.as_uri() for path in sorted(folder.glob(f"{name}-*-py3-none-any.whl"))]
    content = read_address(page, context)
    links = Links()
    links.feed((content or b"").decode("utf-8", "replace"))
    addresses = [urllib.parse.urljoin(page, each) for each in links.found]
    wheel = re.compile(rf"/{name}-[^/]*-py3-none-any\.whl(#|$)")
    return [each for each in reversed(addresses) if wheel.search(each)][:5]


def read_address(address: str, context: ssl.SSLContext) -> bytes | None:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S, context=context) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, ValueError):
        return None
