"""People of the dashboard at the guard: their role is the access file's, whatever came with it."""

import asyncio

import pytest

from gateway.auth import APPLY_POLICIES, INFERENCE, OPEN, permit
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.operations import ROUTES
from gateway.control.people import MAY, SignedInPeople, people_of, permissions_of, verify_body
from gateway.control.roles import KeyScope, expand_scopes
from gateway.errors import RequestError
from ledger.identity.people import AccessFile, DashboardRole, Person
from ledger.identity.vouchers import HEADER, KEY_FILE, VouchedRequest, digest, vouch

KEY, NOW_US = b"k" * 32, 10**15
FILE = """
[proxy]
secret_file = "proxy.secret"
[people."ada@example.com"]
role = "admin"
[people."eve@example.com"]
role = "viewer"
teams = ["search"]
"""


@pytest.fixture
def access(tmp_path) -> AccessFile:
    path = tmp_path / "access.toml"
    path.write_text(FILE)
    return AccessFile(path)


def asking(name: str | None, *more: tuple[bytes, bytes]) -> dict:
    word = vouch(KEY, name, VouchedRequest("GET", "/v1/x?a=1"), b"", NOW_US).encode()
    return {
        "type": "http", "method": "GET", "path": "/v1/x", "raw_path": b"/v1/x",
        "query_string": b"a=1", "headers": [(HEADER.encode(), word), *more],
    }  # fmt: skip


def identity(people: SignedInPeople, name: str | None):
    scope = asking(name)
    word = people.vouched_header(scope)
    assert word is not None
    return people.identity(word, scope, NOW_US)[0]


def test_a_person_may_what_the_file_says_and_is_named(access) -> None:
    found = identity(SignedInPeople(access, lambda: KEY), "Ada@example.com")
    assert (found.user_id, found.scopes) == ("ada@example.com", MAY[DashboardRole.ADMIN])
    access.path.write_text(FILE.replace('"admin"', '"finance"'))
    found = identity(SignedInPeople(access, lambda: KEY), "ada@example.com")
    with pytest.raises(RequestError, match=f"ada does not have the scope `{APPLY_POLICIES}`"):
        permit(found, APPLY_POLICIES, "ada")


@pytest.mark.parametrize("name", ["joe@example.com", None])
def test_who_is_not_in_it_is_let_in_nowhere(access, name) -> None:
    with pytest.raises(RequestError, match="has no role") as refused:
        identity(SignedInPeople(access, lambda: KEY), name)
    assert refused.value.row.status == 403


def test_a_file_that_cannot_be_read_lets_nobody_in(access) -> None:
    access.path.write_text("wat")
    with pytest.raises(RequestError, match="The access file is invalid, so nobody can sign in"):
        identity(SignedInPeople(access, lambda: KEY), "ada@example.com")


def test_without_a_file_nobody_has_a_name_and_nothing_is_changed() -> None:
    people = SignedInPeople(None, lambda: KEY)
    found = identity(people, None)
    assert (found.user_id, found.key_id) == (None, OPEN)
    changes = {item for item in ROUTES.values() if item.endswith((":apply", "keys", "keys:all"))}
    assert changes.isdisjoint(expand_scopes(found.scopes))
    assert changes, "the control"
    with pytest.raises(RequestError, match="No access file here says what ada may do"):
        identity(people, "ada")


def test_a_viewer_of_one_team_may_nothing_of_the_house(access) -> None:
    assert identity(SignedInPeople(access, lambda: KEY), "eve@example.com").scopes == frozenset()
    assert (
        permissions_of(Person("x", DashboardRole.VIEWER))
        == MAY[DashboardRole.VIEWER]
        != frozenset()
    )


def test_roles_hold_more_and_more_and_nobody_asks_a_model() -> None:
    assert MAY[DashboardRole.VIEWER] < MAY[DashboardRole.FINANCE]
    assert (
        expand_scopes(MAY[DashboardRole.FINANCE])
        < expand_scopes(MAY[DashboardRole.ADMIN])
        == set(KeyScope) - {INFERENCE, KeyScope.KEYS_OWN}
    )


def test_no_word_is_heard_without_a_key_of_this_gateway(access) -> None:
    for key, words in ((None, "no dashboard key"), (b"x" * 32, "not made for this request")):
        with pytest.raises(RequestError, match=words) as refused:
            identity(SignedInPeople(access, lambda key=key: key), "ada@example.com")
        assert refused.value.row.status == 401


@pytest.mark.parametrize("more", [HEADER.encode(), b"authorization", b"x-api-key", b"api-key"])
def test_a_word_stands_alone(access, more) -> None:
    people = SignedInPeople(access, lambda: KEY)
    with pytest.raises(RequestError, match="not both"):
        people.vouched_header(asking("ada@example.com", (more, b"Bearer gw_a_b")))
    assert people.vouched_header({"headers": [(b"authorization", b"Bearer gw_a_b")]}) is None


@pytest.mark.parametrize("parts", [[b"ab", b"cd"], [b"abcd"], [b"abcd", b""]])
def test_the_body_is_the_one_that_was_vouched_for(parts) -> None:
    def told(body: str) -> bytes:
        rest = iter(parts)
        left = [len(parts)]

        async def receive() -> dict:
            left[0] -= 1
            return {"type": "http.request", "body": next(rest), "more_body": left[0] > 0}

        async def read() -> bytes:
            checked, found = verify_body(receive, body), b""
            while True:
                message = await checked()
                found += message["body"]
                if not message["more_body"]:
                    return found

        return asyncio.run(read())

    assert told(digest(b"abcd")) == b"abcd"
    with pytest.raises(RequestError, match="another body"):
        told(digest(b"abce"))


def test_the_key_is_read_at_each_request(tmp_path) -> None:
    people = people_of(Settings(state_dir=str(tmp_path)), Clock())
    with pytest.raises(RequestError, match="no dashboard key"):
        identity(people, None)
    (tmp_path / KEY_FILE).write_bytes(KEY)
    assert identity(people, None).key_id == OPEN
