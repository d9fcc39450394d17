"""Makers: which keys are theirs, and what counts on the limits of the first one."""

from types import SimpleNamespace

from gateway.control.admin.key_makers import KeyMaker, count_keys, times_made
from ledger.identity.keychanges import KnownKey
from ledger.identity.lineage import KeyOrigin

NOW_US, DAY_US = 1_780_000_000_000_000, 86_400_000_000


def key(name: str, **changes) -> KnownKey:
    fields = dict.fromkeys(KnownKey._fields) | {
        "id": name, "name": name, "team": "search", "scopes": [], "created_us": NOW_US - 1,
    }  # fmt: skip
    return KnownKey(**fields | changes)


def maker(line: str | None, origin: KeyOrigin) -> KeyMaker:
    return KeyMaker(
        SimpleNamespace(), "acme", "search", "ann", frozenset(), None, False, (), None, None,
        origin, line,
    )  # fmt: skip


def test_what_came_from_a_key_is_its_own_and_so_is_itself() -> None:
    mine = maker("one", KeyOrigin(makers=("one",)))
    assert mine.made(key("one"))
    assert mine.made(key("two", line="one"))
    assert mine.made(key("child", makers=["one"]))
    assert mine.made(key("grandchild", makers=["one", "child"]))
    assert not mine.made(key("sibling", makers=["other"]))
    person = maker(None, KeyOrigin(member="ann"))
    assert person.made(key("hers", member="ann"))
    assert not person.made(key("his", member="bob"))
    assert not person.made(key("elsewhere", member="ann", team="ads"))


def test_rotated_keys_count_while_they_go_on() -> None:
    mine = maker("one", KeyOrigin(makers=("one",)))
    found = [
        key("one", ends_us=NOW_US + 1),  # rotated, and goes on
        key("two", line="one"),
        key("child", makers=["one"]),
        key("revoked", makers=["one"], revoked_us=NOW_US),
        key("old", makers=["one"], created_us=NOW_US - 2 * DAY_US),
    ]
    assert count_keys(found, mine, NOW_US) == (3, 3)
    assert times_made([*found, key("new", makers=["one"], created_us=NOW_US)], mine, NOW_US) == [
        NOW_US - 1, NOW_US - 1, NOW_US - 1, NOW_US,
    ]  # fmt: skip
