"""The names that keys belong to, by kind of scope."""

from ledger.identity.keys import KeySpec, create_key
from ledger.identity.known_names import known_names


def test_names_are_told_by_kind_and_a_kind_without_any_is_left_out(engine) -> None:
    assert known_names(engine) == {}
    with engine.begin() as connection:
        spec = KeySpec(name="laptop", team="search", org="acme", tags=(("app", "web"),))
        key = create_key(connection, spec, pepper=b"p" * 32, now_us=1)
    assert known_names(engine) == {
        "org": {"acme"}, "team": {"search"}, "key": {key.key_id}, "tag": {"app", "app=web"},
    }  # fmt: skip
