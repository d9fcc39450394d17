"""Ways in: what is believed, what is not, and that it is asked again each time."""

from types import SimpleNamespace

import pytest
import streamlit as st

from dashboard import viewer_identity
from dashboard.viewer import NotAllowed, Viewer
from dashboard.viewer_identity import (
    SignInNeeded,
    access_file,
    proxied_name,
    signed_in_name,
    who_is,
)
from ledger.identity.people import AccessFile, DashboardRole, parse

NOW_S = 1_790_000_000.0
OIDC = '[auth]\nclient_id="c"\n[people."ada@example.com"]\nrole="finance"\n'
USER = {"is_logged_in": True, "email": "ada@example.com", "email_verified": True, "iat": NOW_S}
SECRET = b"a secret of the proxy"


def test_the_file_is_named_by_flag_or_environment(tmp_path) -> None:
    assert access_file(["app.py"], {}) is None
    assert access_file(["app.py"], {viewer_identity.FILE_VARIABLE: ""}) is None
    assert str(access_file(["app.py"], {viewer_identity.FILE_VARIABLE: "/a"}).path) == "/a"
    assert str(access_file(["--access", "/b"], {viewer_identity.FILE_VARIABLE: "/a"}).path) == "/b"


def test_a_sign_in_says_a_name_and_since_when() -> None:
    assert signed_in_name(USER, parse(OIDC)) == ("ada@example.com", NOW_S)
    by_sub = parse(OIDC + '[oidc]\nclaim="sub"\n')
    assert signed_in_name({**USER, "sub": "u1", "email_verified": False}, by_sub)[0] == "u1"
    with pytest.raises(SignInNeeded):
        signed_in_name({"is_logged_in": False}, parse(OIDC))
    with pytest.raises(SignInNeeded):
        signed_in_name({}, parse(OIDC))


@pytest.mark.parametrize(
    "change",
    [{"email": None}, {"email": ""}, {"email": ["x"]}, {"email_verified": False},
     {"email_verified": "true"}, {"email_verified": None}, {"iat": None}, {"iat": "now"}],
)  # fmt: skip
def test_what_a_sign_in_does_not_vouch_for_is_refused(change: dict) -> None:
    with pytest.raises(NotAllowed):
        signed_in_name({**USER, **change}, parse(OIDC))


@pytest.mark.parametrize(
    ("given", "users", "name"),
    [
        ([SECRET.decode()], ["ada@example.com"], "ada@example.com"),
        ([SECRET.decode()], [" ada@example.com "], "ada@example.com"),
        ([], ["ada@example.com"], None),
        (["wrong"], ["ada@example.com"], None),
        (["\u20ac" * 21], ["ada@example.com"], None),
        ([SECRET.decode(), SECRET.decode()], ["ada@example.com"], None),
        ([SECRET.decode()], [], None),
        ([SECRET.decode()], [""], None),
        ([SECRET.decode()], ["ada@example.com", "eve@example.com"], None),
    ],
)
def test_a_header_counts_beside_the_secret_alone(given, users, name) -> None:
    if name is None:
        with pytest.raises(NotAllowed):
            proxied_name(given, users, SECRET)
    else:
        assert proxied_name(given, users, SECRET) == name


def test_the_role_is_the_files_at_each_asking(tmp_path) -> None:
    path = tmp_path / "access.toml"
    path.write_text(OIDC)
    file = AccessFile(path)
    assert who_is(file, "ada@example.com", NOW_S, NOW_S).role is DashboardRole.FINANCE
    path.write_text(OIDC.replace("finance", "viewer"))
    assert who_is(file, "ada@example.com", NOW_S, NOW_S).role is DashboardRole.VIEWER
    path.write_text(OIDC.replace("ada", "eve"))
    with pytest.raises(NotAllowed, match="has no role here"):
        who_is(file, "ada@example.com", NOW_S, NOW_S)
    path.write_text("no longer a file of people")
    with pytest.raises(NotAllowed, match="The access file is invalid, so nobody can sign in"):
        who_is(file, "ada@example.com", NOW_S, NOW_S)


@pytest.mark.parametrize(("age_h", "held"), [(0, True), (11.9, True), (12.1, False), (-1, False)])
def test_a_sign_in_holds_for_hours(tmp_path, age_h: float, held: bool) -> None:
    (tmp_path / "access.toml").write_text(OIDC)
    file = AccessFile(tmp_path / "access.toml")
    ask = (file, "ada@example.com", NOW_S, NOW_S + age_h * 3600)
    if held:
        assert who_is(*ask).role is DashboardRole.FINANCE
    else:
        with pytest.raises(SignInNeeded):
            who_is(*ask)


@pytest.mark.parametrize(
    ("address", "flags", "let_in"),
    [("127.0.0.1", [], True), ("localhost", [], True), ("0.0.0.0", [], False), (None, [], False),
     ("", [], False), ("0.0.0.0", ["--open"], True)],
)  # fmt: skip
def test_without_a_file_it_is_open_on_this_machine_alone(
    monkeypatch, address: str | None, flags: list[str], let_in: bool
) -> None:
    monkeypatch.delenv(viewer_identity.FILE_VARIABLE, raising=False)
    monkeypatch.setattr("sys.argv", ["app.py", *flags])
    monkeypatch.setattr(st, "get_option", {"server.address": address}.get)
    if let_in:
        assert viewer_identity.identify_viewer()() == Viewer(None, DashboardRole.ADMIN)
    else:
        with pytest.raises(NotAllowed, match="nobody says who may look"):
            viewer_identity.identify_viewer()


@pytest.mark.parametrize(("address", "let_in"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_the_one_person_of_this_machine_is_whoever_looks_from_it(
    tmp_path, monkeypatch, address: str, let_in: bool
) -> None:
    path = tmp_path / "access.toml"
    path.write_text("here = 'ada@example.com'\n[people.'ada@example.com']\nrole = 'finance'\n")
    monkeypatch.setenv(viewer_identity.FILE_VARIABLE, str(path))
    monkeypatch.setattr(viewer_identity.sys, "argv", ["app.py", "--open"])
    monkeypatch.setattr(st, "get_option", lambda name: address)
    if let_in:
        assert viewer_identity.identify_viewer()() == Viewer(
            "ada@example.com", DashboardRole.FINANCE
        )
        return
    with pytest.raises(NotAllowed, match="listens on 127"):
        viewer_identity.identify_viewer()


@pytest.mark.parametrize(
    ("headers", "as_person", "as_anybody"),
    [
        ({"Host": "127.0.0.1:8501"}, True, True),
        ({"Host": "LocalHost:8501"}, True, True),
        ({"Host": "[::1]:8501"}, True, True),
        ({}, True, True),
        ({"Host": "rebound.example:8501", "Origin": "http://rebound.example:8501"}, False, False),
        ({"Host": "127.0.0.1.rebound.example:8501"}, False, False),
        ({"Host": "localhost@rebound.example"}, False, False),
        ({"Host": "[::1"}, False, False),
        ({"Host": ""}, False, False),
        ({"Host": "127.0.0.1:8501", "X-Forwarded-For": "192.0.2.7"}, False, True),
        ({"Host": "costs.example.com", "Forwarded": "for=192.0.2.7"}, False, True),
    ],
)  # fmt: skip
def test_a_page_of_another_site_is_nobody_at_this_machine(
    tmp_path, monkeypatch, headers: dict[str, str], as_person: bool, as_anybody: bool
) -> None:
    """Streamlit takes a socket whose `Origin` is its `Host`, so a name that leads here passed."""
    path = tmp_path / "access.toml"
    path.write_text("here = 'ada@example.com'\n[people.'ada@example.com']\nrole = 'finance'\n")
    monkeypatch.setattr(viewer_identity.sys, "argv", ["app.py"])
    monkeypatch.setattr(st, "get_option", lambda name: "127.0.0.1")
    monkeypatch.setattr(st, "context", SimpleNamespace(headers=headers))
    for file, let_in in ((str(path), as_person), ("", as_anybody)):
        monkeypatch.setenv(viewer_identity.FILE_VARIABLE, file)
        if let_in:
            assert viewer_identity.identify_viewer()().role in (
                DashboardRole.FINANCE, DashboardRole.ADMIN
            )  # fmt: skip
            continue
        with pytest.raises(NotAllowed, match=r"http://127\.0\.0\.1"):
            viewer_identity.identify_viewer()
