"""Each route says who may call it: the matrix of roles and routes, made from the routes."""

import re
from collections.abc import Iterator
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI

from gateway.auth import ANY, INFERENCE
from gateway.clock import Clock
from gateway.control.access import (
    PUBLIC,
    AccessError,
    RouteGuard,
    caller_of,
    guard_routes,
    list_operations,
)
from gateway.control.operations import ROUTES
from gateway.control.roles import ROLES, KeyRole, expand_scopes
from ledger.identity.keychanges import ChangeAuthor, revoke, rotate
from ledger.identity.keys import load_pepper

VARIABLE = re.compile(r"\{[^}]*\}")
BODY = {"model": "nothing-here"}  # refused by whatever reads it, after whom it let in


@pytest.fixture(scope="module", autouse=True)
def lasting(stack) -> Iterator[None]:
    """A connection that goes on: there are some hundred requests."""
    with httpx.Client(trust_env=False, timeout=60) as stack.lasting:
        yield


@pytest.fixture(scope="module")
def tokens(stack) -> dict[str, str]:
    """One key a role, of a team of its own."""
    return {
        role: stack.key(role, team=f"team of {role}", scopes=tuple(sorted(scopes))).token
        for role, scopes in ROLES.items()
    }


@pytest.fixture(scope="module")
def nobodies(stack, patiently) -> dict[str, str | None]:
    """Who is let in nowhere: with an admin's key that is over, or with half of one."""
    every, now_us = tuple(ROLES[KeyRole.ADMIN]), Clock().wall_us()
    expired = stack.key("expired", scopes=every, expires_us=now_us + 1_500_000)
    revoked, rotated = (stack.key(name, scopes=every) for name in ("revoked", "rotated"))
    ann = ChangeAuthor("ann", None, now_us)
    with stack.database.begin() as connection:
        revoke(connection, revoked.key_id, ann)
        rotate(connection, rotated.key_id, ann, pepper=load_pepper(stack.state), ends_us=now_us + 2)
    spoilt = stack.key("spoilt", scopes=every).token[:-1] + "x"
    found = {"expired": expired.token, "revoked": revoked.token, "rotated": rotated.token}
    patiently(
        lambda: {called(stack, "GET /v1/models", finding) for finding in found.values()} == {401}
    )
    return {**found, "spoilt": spoilt}


def called(stack, name: str, token: str | None, client: httpx.Client | None = None) -> int:
    method, _, path = name.partition(" ")
    url = stack.url + VARIABLE.sub("none", path)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    given = {"json": BODY} if method == "POST" else {}
    return (client or stack.lasting).request(method, url, headers=headers, **given).status_code


def test_a_key_that_is_over_opens_no_route(stack, nobodies) -> None:
    """All routes of a scope have the same guard: one of each is asked."""
    one_each = {scope: name for name, scope in ROUTES.items() if scope != PUBLIC}
    for name in one_each.values():
        for token in nobodies.values():
            assert called(stack, name, token) == 401


def test_every_role_on_every_route(stack, tokens) -> None:
    """Whoever is let in is told of the body, or served; nobody else gets so far."""
    found, told = {}, {}
    for name, _ in list_operations(stack.app):
        needed = ROUTES[name]
        for role, token in {**tokens, "nobody": None, "stranger": "gw_0_0"}.items():
            status = called(stack, name, token)
            found[name, role] = {401: "who", 403: "no"}.get(status, "yes")
            if needed == PUBLIC:
                told[name, role] = "yes"
            elif role not in ROLES:
                told[name, role] = "who"
            else:
                held = {ANY, *expand_scopes(ROLES[role])}
                told[name, role] = "yes" if needed in held else "no"
    assert found == told
    assert {"yes", "no"} == {said for (_, role), said in told.items() if role == "developer"}


ALLOCATED = {"virtual-tags", "business-metrics"}
SPENT, HELD = {"usage", "costs", "decisions"}, {"policies", "targets", "routes", "engines"}
READ = {"prices", "currencies", "scenarios", "budgets", "anomalies", *ALLOCATED}
OFFERS = {"gpu-prices", "reserved"}
PAID = {"invoices", "claims", "projects", "contracts", "rates", "changes", "verdict", "fleet"}
SEES = {
    KeyRole.VIEWER: SPENT | HELD | READ | {"estimates", "journal_findings"},
    KeyRole.FINANCE: SPENT | {"policies"} | READ | PAID | OFFERS,
    KeyRole.DEVELOPER: SPENT,
    KeyRole.MEMBER: SPENT | {"own"},
    KeyRole.TEAM_ADMIN: SPENT | {"budgets", "keys"},
}
CHANGES = {
    KeyRole.VIEWER: set(),
    KeyRole.FINANCE: {
        "prices",
        "currencies",
        "invoices",
        "claims",
        "projects",
        "rates",
        "scenarios",
        "budgets",
        "anomalies",
        *ALLOCATED,
        *OFFERS,
    },
    KeyRole.DEVELOPER: set(),
    KeyRole.MEMBER: {"own"},
    KeyRole.TEAM_ADMIN: {"keys"},
}
ASKS = ("/check", "/diff", "/simulate", "/compare")  # a POST for the length of the question


@pytest.mark.parametrize("role", SEES)
def test_what_a_role_sees_and_changes_of_an_organisation(role) -> None:
    """Said once more, in other words than the table's: a line that is too generous is found."""
    seen, changed = set(), set()
    for name, scope in ROUTES.items():
        method, _, path = name.partition(" ")
        about = path.removeprefix("/v1/organization/").split("/")[0]
        if path.startswith("/v1/organization/") and scope in expand_scopes(ROLES[role]):
            asks = method == "GET" or path.endswith(ASKS)
            (seen if asks else changed).add(about)
    assert (seen, changed) == (SEES[role], CHANGES[role])
    assert ROUTES["POST /v1/organization/keys/any"] not in expand_scopes(ROLES[role])


def test_every_route_but_the_public_ones_is_guarded(stack) -> None:
    """The hot paths have no route object: `HotApi` asks for the scope that the table has."""
    for name, route in list_operations(stack.app):
        if route is None:
            assert ROUTES[name] == INFERENCE
        else:
            assert isinstance(route.app, RouteGuard) is (ROUTES[name] != PUBLIC), name
            assert ROUTES[name] == PUBLIC or route.app.scope == ROUTES[name]


def nothing() -> dict[str, str]:
    return {}


@pytest.fixture
def app() -> FastAPI:
    made = FastAPI(openapi_url=None)
    made.get("/open")(nothing)
    made.get("/shut")(nothing)
    return made


HOT_LINES = {name: scope for name, scope in ROUTES.items() if "POST /v1/chat" in name}


@pytest.fixture
def table() -> dict[str, str]:
    hot = {
        name: INFERENCE for name, route in list_operations(FastAPI(openapi_url=None)) if not route
    }
    return {**hot, "GET /open": PUBLIC, "GET /shut": "usage"}


class NobodyElse:
    def recall(self, token: str, now_us: int) -> None:
        return None


def test_a_route_without_a_line_stops_the_start(app, table) -> None:
    guard_routes(app, NobodyElse(), Clock(), table)
    app.get("/forgotten")(nothing)
    with pytest.raises(AccessError, match="GET /forgotten does not say who may call it"):
        guard_routes(app, NobodyElse(), Clock(), table)


def test_a_line_without_its_route_does_too(app, table) -> None:
    with pytest.raises(AccessError, match="GET /gone is not a route"):
        guard_routes(app, NobodyElse(), Clock(), {**table, "GET /gone": PUBLIC})


def test_a_hot_path_is_for_inference_alone(app, table) -> None:
    path = next(iter(HOT_LINES))
    with pytest.raises(AccessError, match=f"{path} is for `inference`"):
        guard_routes(app, NobodyElse(), Clock(), {**table, path: PUBLIC})


def test_what_is_no_single_route_cannot_be_guarded(app, table) -> None:
    app.mount("/below", FastAPI())
    with pytest.raises(AccessError, match="no single route"):
        guard_routes(app, NobodyElse(), Clock(), table)


def test_the_matrix_sees_a_guard_that_is_missing(stack, tokens) -> None:
    """The negative control: a route that lost its guard is not served, and is found by the cell."""
    name = "GET /v1/organization/costs"
    route = dict(list_operations(stack.app))[name]
    guarded = route.app
    assert called(stack, name, tokens["developer"]) == 400  # it asks for a start
    assert called(stack, name, None) == 401
    route.app = guarded._app
    try:
        broken = called(stack, name, None, stack.client)  # which ends the connection
        assert broken == 500  # it has no caller to answer to
    finally:
        route.app = guarded
    guarded.scope = "inference"
    try:
        viewer = tokens["viewer"]
        assert called(stack, name, viewer) == 403
    finally:
        guarded.scope = "usage"
    assert called(stack, name, tokens["viewer"]) == 400


def test_a_request_without_a_guard_has_no_caller() -> None:
    with pytest.raises(KeyError):
        caller_of(SimpleNamespace(scope={}))
