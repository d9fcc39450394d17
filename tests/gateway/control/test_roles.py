"""Roles are sets of scopes; nobody hands on what it does not hold."""

from gateway.control.roles import ROLES, KeyRole, KeyScope, expand_scopes, missing_scopes, role_of


def test_every_scope_is_in_a_role_and_the_admin_has_them_all() -> None:
    assert set(ROLES) == set(KeyRole)
    assert ROLES[KeyRole.ADMIN] == set(KeyScope)
    assert all(scopes <= set(KeyScope) for scopes in ROLES.values())


def test_who_only_looks_changes_nothing() -> None:
    assert not {item for item in ROLES[KeyRole.VIEWER] if item.endswith(":apply") or "keys" in item}
    assert "inference" not in ROLES[KeyRole.VIEWER] | ROLES[KeyRole.FINANCE]
    assert "operations:apply" not in ROLES[KeyRole.FINANCE]


def test_a_wider_scope_holds_the_narrower() -> None:
    assert expand_scopes({"usage:all", "policies:apply"}) == {
        "usage:all", "usage", "policies:apply", "policies",
    }  # fmt: skip
    assert missing_scopes({"usage:all"}, ["usage", "inference"]) == ["inference"]
    assert missing_scopes({"usage"}, ["usage:all"]) == ["usage:all"]
    assert missing_scopes(ROLES[KeyRole.TEAM_ADMIN], ROLES[KeyRole.DEVELOPER]) == []
    assert missing_scopes(ROLES[KeyRole.TEAM_ADMIN], ["keys:all"]) == ["keys:all"]


def test_a_role_is_known_again_by_its_scopes() -> None:
    assert role_of(["usage", "inference"]) is KeyRole.DEVELOPER
    assert role_of(["inference"]) is None
