"""Records become rows without losing a field, and come back from them."""

from sqlalchemy import select

from ledger import orm
from ledger.fold import Item
from ledger.records import TOKEN_COLUMNS, AttemptOpened, AttemptSettled, RequestRefused, Tokens
from ledger.repository import Repository
from ledger.rows import UNSETTLED, lost_values, opened_from, opened_row, settled_values


def test_every_field_of_a_record_has_a_column():
    columns = set(orm.Attempt.__table__.columns.keys())
    decided = {"decision", "shadow_policy", "shadow_target", "shadow_reason"}
    assert set(AttemptOpened.__struct_fields__) - columns == {"holds", *decided}
    assert decided <= set(orm.AttemptDecision.__table__.columns.keys())
    assert set(AttemptSettled.__struct_fields__) - columns == {
        "tokens", "compared", "unknown_tier", "disputed",
    }  # fmt: skip
    assert list(TOKEN_COLUMNS) == list(Tokens.__struct_fields__)
    assert set(TOKEN_COLUMNS.values()) <= columns


def test_every_column_is_written(opened, settled):
    columns = set(orm.Attempt.__table__.columns.keys()) - {"seq"}
    row = opened_row(opened(), "j")
    assert set(row) | set(UNSETTLED) == columns
    assert set(settled_values(opened(), settled(), late=False)) == set(UNSETTLED)
    assert set(lost_values(opened(), 1)) == set(UNSETTLED)


def test_an_open_record_comes_back_from_its_row(opened):
    record = opened(holds=(), decision=b"")
    assert opened_from(opened_row(record, "j")) == record


def test_no_record_is_lost_for_a_text_that_a_database_does_not_take(engine, opened, settled):
    texts = {"model": "simp/x\0y", "target": "simp/x\0y", "upstream_model": "x\0y"}
    records = [
        opened(**texts, tags=(("app", "a\0b"),)),
        settled(finish_reason="a\0b", error="\0", tier="\0"),
        RequestRefused(
            request_id="x1", refused_us=1, key_id="k", team_id="t", org_id="o", model="x\0y",
            policy="p", reason="budget", http_status=429,
        ),
    ]  # fmt: skip
    items = [Item("w0-a", 1, place, b"", record) for place, record in enumerate(records)]
    applied = Repository(engine, host="h1").apply(items, (), at_us=5)
    assert (applied.settled, applied.quarantined) == (1, 0)
    with engine.connect() as connection:
        row = connection.execute(select(orm.Attempt.__table__)).mappings().one()
        refused = connection.execute(select(orm.Refusal.model)).scalar_one()
    assert (row["model"], row["finish_reason"]) == ("simp/x\ufffdy", "a\ufffdb")
    assert (row["tags"], refused) == ({"app": "a\ufffdb"}, "x\ufffdy")


def test_flags_say_what_to_look_at(opened, settled):
    def flag(late=False, **changes):
        return settled_values(opened(), settled(**changes), late=late)["flag"]

    assert flag() is None
    assert flag(late=True) == "late"
    assert flag(cost_pusd=None) == "unpriced"
    assert flag(cost_pusd=1001) == "over_bound"
    assert flag(tier="scale", unknown_tier=True) == "unknown_tier"
    assert flag(tier="flex") is None
    assert flag(disputed=True) == flag(disputed=True, cost_pusd=1001) == "disputed"
