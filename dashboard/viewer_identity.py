"""Ways to identify the viewer: OIDC sign-in, a trusted proxy, or this machine only.

`-- --access FILE` (or `BREAKEVEN_DASHBOARD_ACCESS`) names the access file
(`ledger.identity.people`). With `[auth]`, people sign in with Streamlit's `st.login`. With
`[proxy]`, a proxy names them in a header, accepted only with a secret of the proxy. With `here`,
any browser on this machine is that person. Without a file the dashboard is open. The last two serve
this machine only; an open dashboard also serves others with `--open`. A page of another site that
resolves to this machine (DNS rebinding) is refused by its host name.
"""

import hmac
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.viewer import NotAllowed, Viewer, Who, viewer_of
from ledger.identity.people import (
    AccessDocument,
    AccessFile,
    AccessFileError,
    DashboardRole,
    UnnamedPerson,
)

FILE_VARIABLE = "BREAKEVEN_DASHBOARD_ACCESS"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_THIS_MACHINE = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.IGNORECASE)
FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip")
AT_THIS_MACHINE = Viewer(None, DashboardRole.ADMIN)


class SignInNeeded(Exception):
    """The viewer has not signed in, or signed in too long ago."""


def access_file(arguments: Sequence[str], environ: Mapping[str, str]) -> AccessFile | None:
    """Return the file named on the command line, else in the environment."""
    named = environ.get(FILE_VARIABLE) or None
    if "--access" in arguments[:-1]:
        named = arguments[list(arguments).index("--access") + 1]
    return None if named is None else _file(named)


@st.cache_resource(max_entries=2)
def _file(path: str) -> AccessFile:
    return AccessFile(Path(path))


def identify_viewer() -> Who:
    """Return the session's viewer. Raises `SignInNeeded`, or `NotAllowed` with a text."""
    file = access_file(sys.argv[1:], os.environ)
    if file is None:
        return _open()
    access = _read(file)
    if access.here is not None:
        name, since_s = _name_of_this_machine(access.here), None
    elif access.proxy is not None:
        name, since_s = _proxied_name(file, access), None
    else:
        name, since_s = signed_in_name(st.user.to_dict(), access)
    who = partial(who_is, file, name, since_s)
    who()
    return who


def who_is(
    file: AccessFile, name: str, since_s: float | None, now_s: float | None = None
) -> Viewer:
    """Return a person's current entry in the file; `since_s` is when they signed in."""
    access = _read(file)
    person = access.find(name)
    if person is None:
        raise NotAllowed(
            f"{name} has no role here. Whoever runs this dashboard gives one in its access file."
        )
    if since_s is not None and not access.lasts(since_s, time.time() if now_s is None else now_s):
        raise SignInNeeded
    return viewer_of(person)


def signed_in_name(user: Mapping[str, Any], access: AccessDocument) -> tuple[str, float]:
    """Return the name that the identity provider vouches for, and since when."""
    if not user.get("is_logged_in"):
        raise SignInNeeded
    try:
        return access.name_of_sign_in(user)
    except UnnamedPerson as error:
        raise NotAllowed(str(error)) from error


def _name_of_this_machine(name: str) -> str:
    if st.get_option("server.address") not in LOOPBACK:
        raise NotAllowed(
            f"`here` of the access file lets everyone in as {name}: such a dashboard listens on "
            "127.0.0.1 alone. Give it [auth] or [proxy], or set `dashboard.host` to 127.0.0.1."
        )
    if _is_forwarded() or not _names_this_machine():
        raise NotAllowed(
            f"`here` of the access file lets in as {name} who opens http://127.0.0.1 or "
            "http://localhost on this machine. A proxy needs [proxy] in that file."
        )
    return name


def _names_this_machine() -> bool:
    """Return whether the `Host` header names this machine; browsers always send one."""
    host = st.context.headers.get("Host")
    return host is None or _THIS_MACHINE.fullmatch(host) is not None


def _is_forwarded() -> bool:
    """Return whether a proxy forwarded the request; a page cannot set these headers."""
    return any(name in st.context.headers for name in FORWARDED)


def _proxied_name(file: AccessFile, access: AccessDocument) -> str:
    assert access.proxy is not None
    headers = st.context.headers
    try:
        secret = file.secret(access.proxy.secret_file)
    except AccessFileError as error:
        raise NotAllowed(f"The access file is invalid, so nobody can sign in: {error}.") from error
    return proxied_name(
        headers.get_all(access.proxy.secret_header),
        headers.get_all(access.proxy.user_header),
        secret,
    )


def proxied_name(given: Sequence[str], users: Sequence[str], secret: bytes) -> str:
    """Return the name in the header. Raises `NotAllowed` without the proxy's secret."""
    known = len(given) == 1 and hmac.compare_digest(given[0].encode("latin-1", "replace"), secret)
    if not known:
        raise NotAllowed("This dashboard answers through its proxy alone.")
    if len(users) != 1 or not users[0].strip():
        raise NotAllowed("The proxy does not say who you are.")
    return users[0].strip()


def _open() -> Who:
    address = st.get_option("server.address")
    if address not in LOOPBACK and "--open" not in sys.argv[1:]:
        raise NotAllowed(
            "This dashboard can be reached from elsewhere and nobody says who may look. Name an "
            "access file (`dashboard.access_file`), or have it listen on 127.0.0.1."
        )
    if "--open" not in sys.argv[1:] and not (_names_this_machine() or _is_forwarded()):
        raise NotAllowed(
            "This dashboard is this machine's alone: open it as http://127.0.0.1 or "
            "http://localhost, or name an access file (`dashboard.access_file`)."
        )
    return _here


def _here() -> Viewer:
    return AT_THIS_MACHINE


def _read(file: AccessFile) -> AccessDocument:
    try:
        return file.read()
    except AccessFileError as error:
        raise NotAllowed(f"The access file is invalid, so nobody can sign in: {error}.") from error
