"""Keys over HTTP: nobody hands on what they do not hold, or reaches another team's."""

from typing import Any

import pytest

from gateway.control.roles import ROLES, KeyRole

PATH = "/v1/organization/keys"


@pytest.fixture(scope="module")
def tokens(stack) -> dict[str, Any]:
    def key(name: str, role: KeyRole, **spec: Any) -> Any:
        return stack.key(f"keys {name}", scopes=tuple(sorted(ROLES[role])), **spec)

    return {
        "admin": key("admin", KeyRole.ADMIN, team="platform"),
        "lead": key("lead", KeyRole.TEAM_ADMIN, team="search", tags=(("app", "web"),)),
        "narrow": key("narrow", KeyRole.TEAM_ADMIN, team="search", models=("own",),
                      residency="internal_only"),
        "other": key("other", KeyRole.TEAM_ADMIN, team="ads"),
        "developer": key("developer", KeyRole.DEVELOPER, team="search"),
    }  # fmt: skip


@pytest.fixture
def ask(stack, tokens):
    def post(who: str, path: str = "", **given: Any):
        return stack.post(PATH + path, given, tokens[who].token)

    return post


def listed(stack, token: str) -> dict[str, dict[str, Any]]:
    return {entry["key_id"]: entry for entry in stack.get(PATH, token).json()["data"]}


def test_a_team_admin_makes_a_key_of_the_own_team_and_sees_no_other(stack, tokens, ask) -> None:
    made = ask("lead", name="app").json()
    assert (made["team"], made["org"]) == ("search", "default")
    assert stack.chat("own", made["token"], max_tokens=2).status_code == 200
    mine = listed(stack, tokens["lead"].token)
    assert {item["team"] for item in mine.values()} == {"search"}
    assert mine[made["key_id"]]["scopes"] == ["inference"]
    assert made["token"].rpartition("_")[2] not in str(mine)
    assert made["key_id"] not in listed(stack, tokens["other"].token)
    assert made["key_id"] in listed(stack, tokens["admin"].token)


@pytest.mark.parametrize(
    ("given", "status", "param"),
    [
        ({"team": "ads"}, 400, "team"),
        ({"org": "default"}, 400, "org"),
        ({"tags": {"app": "free"}}, 400, "tags"),
        ({"org_id": "default"}, 400, "org_id"),
        ({"residency": "any"}, 400, "residency"),
        ({"expires_us": 0}, 400, "expires_us"),
        ({"secret_hash": "x"}, 400, "secret_hash"),
        ({"key_id": "x"}, 400, "key_id"),
        ({"scopes": ["everything"]}, 400, "scopes"),
        ({"scopes": []}, 400, "scopes"),
        ({"user": "*"}, 400, None),
        ({"role": "root"}, 400, "role"),
        ({"role": "admin"}, 403, "scopes"),
        ({"role": "viewer"}, 403, "scopes"),
        ({"scopes": ["keys:all"]}, 403, "scopes"),
        ({"scopes": ["usage:all"]}, 403, "scopes"),
        ({"scopes": ["inference", "policies:apply"]}, 403, "scopes"),
        ({"role": "developer", "scopes": ["usage"]}, 400, "role"),
        ({"models": ["nothing-here"]}, 400, "models"),
        ({"days": 0}, 400, "days"),
        ({"name": ""}, 400, "name"),
    ],
    ids=str,
)
def test_no_member_makes_a_key_wider(ask, given, status, param) -> None:
    answer = ask("lead", **{"name": "more", **given})
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)


def test_what_a_team_admin_holds_can_be_handed_on(ask) -> None:
    for role in ("developer", "team_admin"):
        assert ask("lead", name="next", role=role).status_code == 200


def test_models_residency_and_tags_of_the_maker_bind_what_it_makes(stack, ask) -> None:
    made = ask("narrow", name="app").json()["token"]
    assert stack.chat("api", made).status_code == 403
    assert stack.chat("own", made, max_tokens=2).status_code == 200
    assert ask("narrow", name="app", models=["chat"]).status_code == 403
    wider = ask("narrow", name="app", models=["own"], internal_only=False)
    assert (wider.status_code, wider.json()["error"]["param"]) == (403, "internal_only")
    assert ask("narrow", name="app", models=["own"], internal_only=True).status_code == 200
    tagged = ask("lead", name="app").json()["key_id"]
    with stack.database.connect() as connection:
        row = connection.exec_driver_sql(f"SELECT tags FROM keys WHERE id = '{tagged}'").scalar()
    assert '"web"' in row


def test_no_key_is_made_for_another_teams_user(ask) -> None:
    """Whose budget it would spend, and in whose name."""
    assert ask("other", name="hers", user="ann").status_code == 200
    answer = ask("lead", name="not hers", user="ann")
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "user")
    assert ask("lead", name="his", user="bob").status_code == 200
    assert ask("lead", name="his second", user="bob").status_code == 200
    assert ask("admin", "/any", name="in both", team="search", user="ann").status_code == 200
    assert ask("lead", name="hers too", user="ann").status_code == 200


def test_who_has_no_scope_for_keys_makes_none(ask) -> None:
    assert ask("developer", name="x").status_code == 403
    assert ask("lead", "/any", name="x", team="search").status_code == 403


def test_an_admin_makes_keys_of_any_team(ask) -> None:
    made = ask("admin", "/any", name="x", team="ads", role="team_admin").json()
    assert (made["team"], made["org"]) == ("ads", "default")
    taken = ask("admin", "/any", name="x", team="ads", org="another")
    assert (taken.status_code, "belongs to `default`" in taken.json()["error"]["message"]) == (
        400,
        True,
    )


@pytest.mark.parametrize("verb", ["/rotate", "/revoke"])
def test_a_key_of_another_team_is_told_from_none_by_nobody(ask, tokens, verb) -> None:
    theirs = ask("lead", verb, key_id=tokens["other"].key_id)
    none = ask("lead", verb, key_id="none")
    assert theirs.status_code == none.status_code == 404
    words = theirs.json()["error"]["message"].replace(tokens["other"].key_id, "none")
    assert words == none.json()["error"]["message"]


@pytest.mark.parametrize("verb", ["/rotate", "/revoke"])
def test_a_wider_key_of_the_own_team_is_out_of_reach(stack, ask, verb) -> None:
    """To rotate an admin's key would be to be given it."""
    wide = stack.key("keys wide", team="search", scopes=tuple(ROLES[KeyRole.ADMIN]))
    answer = ask("lead", verb, key_id=wide.key_id)
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "scopes")


def test_a_key_without_bounds_is_not_rotated_by_one_with(stack, ask) -> None:
    free = ask("lead", name="free").json()["key_id"]
    answer = ask("narrow", "/rotate", key_id=free)
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "models")


def test_a_key_of_other_tags_is_rotated_by_who_may_for_all_teams_alone(stack, ask) -> None:
    """Tags open policies: to rotate a key is to be given it."""
    other = stack.key("keys tagged", team="search", tags=(("tier", "best"),))
    answer = ask("lead", "/rotate", key_id=other.key_id)
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "key_id")
    assert ask("admin", "/rotate", key_id=other.key_id).status_code == 200


def expiry(stack, key_id: str) -> int | None:
    with stack.database.connect() as connection:
        query = f"SELECT expires_us FROM keys WHERE id = '{key_id}'"
        return connection.exec_driver_sql(query).scalar()


@pytest.mark.parametrize(("verb", "who"), [("", "search"), ("/any", "platform")])
def test_no_key_makes_one_that_lasts_longer_than_itself(stack, ask, verb, who) -> None:
    maker = ask("admin", "/any", name="for a week", team=who, days=7, role="admin").json()
    ends_us = expiry(stack, maker["key_id"])

    def post(path: str, **given: Any):
        return stack.post(PATH + path, given, maker["token"])

    made = post(verb, name="next").json()
    assert expiry(stack, made["key_id"]) == ends_us  # as its maker where nothing is said
    assert expiry(stack, post(verb, name="next", days=1).json()["key_id"]) < ends_us
    longer = post(verb, name="next", days=8)
    assert (longer.status_code, longer.json()["error"]["param"]) == (403, "days")
    itself = post("/rotate", key_id=maker["key_id"], days=3650)
    assert (itself.status_code, itself.json()["error"]["param"]) == (403, "days")
    endless = ask("admin", "/any", name="endless", team=who, role="admin").json()["key_id"]
    assert post("/rotate", key_id=endless).status_code == 403
    assert post("/rotate", key_id=endless, days=1).status_code == 200
    after = post("/rotate", key_id=maker["key_id"]).json()["key_id"]
    assert expiry(stack, after) == ends_us


def test_a_rotated_key_goes_on_for_a_while_and_its_successor_at_once(stack, ask, patiently) -> None:
    old = ask("lead", name="app", days=30).json()
    made = ask("lead", "/rotate", key_id=old["key_id"], overlap="3s").json()
    assert made["replaces"] == old["key_id"]
    assert stack.chat("own", made["token"], max_tokens=2).status_code == 200
    assert stack.chat("own", old["token"], max_tokens=2).status_code == 200
    patiently(lambda: stack.chat("own", old["token"], max_tokens=2).status_code == 401)
    assert stack.chat("own", made["token"], max_tokens=2).status_code == 200


def test_a_revoked_key_is_refused_and_who_did_it_is_written(stack, tokens, ask, patiently) -> None:
    made = ask("lead", name="leaving").json()
    assert stack.chat("own", made["token"], max_tokens=2).status_code == 200
    assert ask("lead", "/revoke", key_id=made["key_id"], note="left").json()["state"] == "revoked"
    patiently(lambda: stack.chat("own", made["token"], max_tokens=2).status_code == 401)
    with stack.database.connect() as connection:
        query = f"SELECT event, actor, note FROM key_changes WHERE key_id = '{made['key_id']}'"
        rows = [tuple(row) for row in connection.exec_driver_sql(query)]
    by = f"key:{tokens['lead'].key_id}"
    assert rows == [("made", by, None), ("revoked", by, "left")]
    assert listed(stack, tokens["lead"].token)[made["key_id"]]["state"] == "revoked"


@pytest.mark.parametrize("overlap", ["366d", "999999d", "soon", ""])
def test_an_old_key_goes_on_for_a_year_at_most(ask, overlap) -> None:
    old = ask("lead", name="app").json()
    answer = ask("lead", "/rotate", key_id=old["key_id"], overlap=overlap)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "overlap")
    assert ask("lead", "/rotate", key_id=old["key_id"], overlap="365d").status_code == 200


def test_a_long_list_is_read_page_by_page(stack, tokens, ask) -> None:
    """Each key once, in the order of the whole list; the last page says that it is the last."""
    for number in range(3):
        ask("lead", name=f"paged {number}")
    token = tokens["lead"].token
    whole, found, query = list(listed(stack, token)), [], "?limit=2"
    for _ in whole:
        page = stack.get(PATH + query, token).json()
        found += [entry["key_id"] for entry in page["data"]]
        assert page["first_id"] == page["data"][0]["key_id"]
        if not page["has_more"]:
            break
        query = f"?limit=2&after={page['last_id']}"
    assert found == whole


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after=nobody", "before=1"])
def test_a_page_that_cannot_be_is_told(stack, tokens, query) -> None:
    answer = stack.get(f"{PATH}?{query}", tokens["lead"].token)
    assert answer.json()["error"]["param"] == query.partition("=")[0], answer.text
    assert answer.status_code in (400, 404)


def test_no_page_begins_at_another_teams_key(stack, tokens, ask) -> None:
    theirs = ask("other", name="app").json()["key_id"]
    answer = stack.get(f"{PATH}?after={theirs}", tokens["lead"].token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "after")


def test_a_token_is_kept_by_no_cache(stack, ask) -> None:
    assert ask("lead", name="app").headers["cache-control"] == "no-store"
