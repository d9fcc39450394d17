"""What is remembered of a key and a model: for that identity alone, and boundedly."""

from dataclasses import replace

import pytest

from gateway.errors import RequestError
from gateway.request import routes
from gateway.request.routes import RouteCache
from ledger.identity.keys import Identity
from router.types import Residency


@pytest.fixture(scope="module")
def identity(stack) -> Identity:
    return stack.call(stack.app.hot._keys.lookup(stack.token, 0))


@pytest.fixture
def known(stack) -> RouteCache:
    dispatcher = stack.app.hot._dispatcher
    return RouteCache(stack.settings, stack.planner._routes._fleet, dispatcher.admission)


def test_a_route_is_found_once(known: RouteCache, identity: Identity) -> None:
    first = known.find("chat", identity)
    assert known.find("chat", identity) is first
    assert first.model == "chat"
    assert len(first.rooms.scopes) == len(first.targets) == len(first.rooms.pusd())


def test_an_alias_has_the_models_own_targets(known: RouteCache, identity: Identity) -> None:
    alias, named = known.find("gpt-4o", identity), known.find("chat", identity)
    assert (alias.model, alias.targets) == ("chat", named.targets)
    assert alias.learning_key == named.learning_key


@pytest.mark.parametrize(
    "changes",
    [{"models": ("own",)}, {"residency": "internal_only"}, {"isolation": "none"},
     {"team_id": "other"}],
)  # fmt: skip
def test_a_key_that_changed_finds_nothing_of_before(
    known: RouteCache, identity: Identity, changes
) -> None:
    """The same id, and what it may do or whose it is has changed."""
    before = known.find("chat", identity)
    changed = replace(identity, **changes)
    if "models" in changes:
        with pytest.raises(RequestError) as forbidden:
            known.find("chat", changed)
        assert forbidden.value.row.status == 403
        return
    after = known.find("chat", changed)
    assert (after.residency is Residency.INTERNAL_ONLY) is ("residency" in changes)
    assert (after.salt is None) is ("isolation" in changes)
    assert (after.learning_key, after.rooms.scopes) == (
        (before.learning_key, before.rooms.scopes)
        if "team_id" not in changes
        else (("chat", "other"), after.rooms.scopes)
    )
    assert any("team:other" in scopes for scopes in after.rooms.scopes) is ("team_id" in changes)
    assert known.find("chat", identity).identity is identity


def test_keys_of_other_teams_share_nothing(known: RouteCache, identity: Identity) -> None:
    ours = known.find("chat", identity)
    theirs = known.find("chat", replace(identity, key_id="k2", team_id="ads"))
    assert known.find("chat", identity) is ours
    assert theirs.learning_key == ("chat", "ads")
    assert theirs.salt != ours.salt
    assert not set(theirs.rooms.scopes[0]) & {f"team:{identity.team_id}", f"key:{identity.key_id}"}


def test_refusals_are_not_remembered_and_routes_are_bounded(
    known: RouteCache, identity: Identity, monkeypatch
) -> None:
    monkeypatch.setattr(routes, "ROUTES_LIMIT", 3)
    for number in range(9):
        with pytest.raises(RequestError):
            known.find(f"nothing-{number}", identity)
        known.find("chat", replace(identity, key_id=f"k{number}"))
    assert [key for _, key in known._known] == ["k6", "k7", "k8"]
