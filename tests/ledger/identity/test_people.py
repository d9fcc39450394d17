"""The access file: who is found, what is refused, and that a change counts at once."""

import pytest

from ledger.identity.people import (
    AHEAD_S,
    AccessFile,
    AccessFileError,
    DashboardRole,
    Person,
    UnnamedPerson,
    parse,
)

FILE = """
[auth]
client_id = "c"
[people."Ada@example.com"]
role = "admin"
[people."*@example.com"]
role = "viewer"
teams = ["search"]
"""
HERE = "here = 'ada@example.com'\n[people.'ada@example.com']\nrole = 'finance'\n"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ada@EXAMPLE.com", Person("ada@example.com", DashboardRole.ADMIN)),
        ("eve@example.com", Person("eve@example.com", DashboardRole.VIEWER, ("search",))),
        ("eve@elsewhere.com", None),
        ("eve@elsewhere.com@example.com", None),
        ("*@example.com", None),
        ("example.com", None),
        ("", None),
    ],
)
def test_who_is_found(name: str, found: Person | None) -> None:
    assert parse(FILE).find(name) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace("admin", "king"), "king"),
        (FILE.replace("teams", "team"), "team"),
        (FILE.replace('"Ada', '"a*'), "a pattern is `*@domain`"),
        (FILE + "[people.'ADA@example.com']\nrole='viewer'", "`ada@example.com` twice"),
        (FILE.replace('["search"]', "[]"), "names at least one"),
        (FILE.replace('"viewer"', '"finance"'), "a finance sees every team"),
        (FILE.replace('[auth]\nclient_id = "c"', ""), "either [auth]"),
        (FILE + "[proxy]\nsecret_file='s'", "either [auth]"),
        ("here = 'ada@example.com'" + FILE, "either [auth]"),
        (HERE.replace("here = 'ada", "here = 'joe"), "`joe@example.com` is nobody"),
        (FILE + "[oidc]\nhours=0", "more than 0"),
        ("people = 1", "people"),
        ("[", "the access file"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(AccessFileError) as raised:
        parse(text)
    assert said in str(raised.value)


def test_who_is_disabled_is_out_whatever_pattern_the_name_has() -> None:
    text = FILE + '[people."bob@example.com"]\nrole = "admin"\ndisabled = true\n'
    assert parse(text).find("Bob@example.com") is None
    assert parse(text.replace("true", "false")).find("bob@example.com").role is DashboardRole.ADMIN


@pytest.mark.parametrize("name", ["\u212aay@example.com", "strau\u00df@example.com"])
def test_who_is_called_nearly_like_somebody_is_not_them(name) -> None:
    """One mailbox is another's where letters fold into others': a Kelvin sign, a sharp s."""
    text = FILE + "".join(
        f'[people."{each_name}@example.com"]\nrole = "admin"\n'
        for each_name in ("kay", "strauss", "stra\u00dfe")
    )
    found = parse(text).find(name)
    assert found is None or found.role is not DashboardRole.ADMIN
    shouted = parse(text).find("STRASSE@example.com")
    assert shouted is None or shouted.role is not DashboardRole.ADMIN
    for own in ("KAY@Example.com", "Strauss@example.com", "stra\u00dfe@EXAMPLE.com"):
        assert parse(text).find(own).role is DashboardRole.ADMIN, "the control"


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({}, "does not say `email`"),
        ({"email": 7}, "does not say `email`"),
        ({"email": "a@b", "iat": 1}, "`email_verified` is not true"),
        ({"email": "a@b", "email_verified": True}, "does not say since when"),
        *(({"email": "a@b", "email_verified": True, "iat": item}, "does not say since when")
          for item in ("1", -(10**400), 10**400, float("inf"), float("nan"))),
    ],
)  # fmt: skip
def test_a_sign_in_that_names_nobody(claims, words) -> None:
    with pytest.raises(UnnamedPerson, match=words):
        parse(FILE).name_of_sign_in(claims)


def test_a_sign_in_holds_for_its_hours() -> None:
    file = parse(FILE + "[oidc]\nhours = 2\nclaim = 'sub'\n")
    assert file.name_of_sign_in({"sub": "ada", "iat": 5}) == ("ada", 5.0)
    ends = {-AHEAD_S - 1: False, -AHEAD_S: True, 7200: True, 7201: False}
    assert {age: file.lasts(1000, 1000 + age) for age in ends} == ends


def test_a_change_counts_with_the_next_read(tmp_path) -> None:
    path = tmp_path / "access.toml"
    path.write_text(FILE)
    file = AccessFile(path)
    first = file.read()
    assert file.read() is first
    path.write_text(FILE.replace("Ada", "Eve"))
    assert file.read().find("ada@example.com").role is DashboardRole.VIEWER
    path.unlink()
    with pytest.raises(AccessFileError):
        file.read()


def test_secrets_are_files_beside_it(tmp_path) -> None:
    file = AccessFile(tmp_path / "access.toml")
    (tmp_path / "s").write_text("0123456789abcdef\n")
    assert file.secret("s") == b"0123456789abcdef"
    (tmp_path / "s").write_text("short")
    with pytest.raises(AccessFileError, match="16 bytes"):
        file.secret("s")
    with pytest.raises(AccessFileError):
        file.secret("none")
