"""Records become rows without losing a field, and come back from them."""

from sqlalchemy import select

from ledger.journals.records import (
    TOKEN_COLUMNS,
    AttemptOpened,
    AttemptSettled,
    RequestRefused,
    TokenCounts,
)
from ledger.orm import tables as orm
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository
from ledger.writing.rows import (
    OPENED,
    SETTLED,
    lost_values,
    opened_record_of,
    opened_values,
    settle_row,
    settled_values,
)


def test_every_field_of_a_record_has_a_column():
    columns = set(orm.AttemptRow.__table__.columns.keys())
    decided = {"decision", "shadow_policy", "shadow_target", "shadow_reason", "inputs", "line_us"}
    assert set(AttemptOpened.__struct_fields__) - columns == {"holds", "counts_on", *decided}
    assert decided <= set(orm.AttemptDecisionRow.__table__.columns.keys())
    assert set(AttemptSettled.__struct_fields__) - columns == {
        "tokens", "compared", "unknown_tier", "disputed", "claimed_pusd", "partly_read",
        "partly_priced", "plausible_pusd", "unseen", "legs",
    }  # fmt: skip
    assert list(TOKEN_COLUMNS) == list(TokenCounts.__struct_fields__)
    assert set(TOKEN_COLUMNS.values()) <= columns


def test_every_column_is_written(opened, settled):
    columns = [name for name in orm.AttemptRow.__table__.columns.keys() if name != "seq"]  # noqa: SIM118  (not a dict)
    assert [*OPENED, *SETTLED] == columns
    assert len(opened_values(opened(), "j")) == len(OPENED)
    assert len(settled_values(opened(), settled(), late=False)) == len(SETTLED)
    assert len(lost_values(opened(), 1)) == len(SETTLED)


def test_every_value_stands_in_its_column(opened, settled):
    record, end = opened(), settled(tier="flex", slo_met=False)
    row = dict(zip(OPENED, opened_values(record, "j"), strict=True))
    fields = set(AttemptOpened.__struct_fields__) - {"holds", "decision", "tags"}
    fields &= set(OPENED)
    assert {name: row[name] for name in fields} == {name: getattr(record, name) for name in fields}
    row = settle_row("a", settled_values(record, end, late=False))
    fields = set(AttemptSettled.__struct_fields__) & set(SETTLED)
    assert {name: row[name] for name in fields} == {name: getattr(end, name) for name in fields}
    tokens = {name: row[column] for name, column in TOKEN_COLUMNS.items()}
    assert TokenCounts(**tokens) == end.tokens
    row = settle_row("a", lost_values(record, 7))
    assert (row["of_attempt"], row["settled_us"], row["basis"], row["output_tokens"]) == (
        "a", 7, "bound", 0,
    )  # fmt: skip
    assert (row["cost_pusd"], row["status"], row["flag"]) == (record.bound_pusd, "lost", "lost")


def test_an_open_record_comes_back_from_its_row(opened):
    record = opened(holds=(), decision=b"")
    row = dict(zip(OPENED, opened_values(record, "j"), strict=True))
    assert opened_record_of(row) == record


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
    items = [JournalItem("w0-a", 1, place, b"", record) for place, record in enumerate(records)]
    applied = LedgerRepository(engine, host="h1").apply(items, (), at_us=5)
    assert (applied.settled, applied.quarantined) == (1, 0)
    with engine.connect() as connection:
        row = connection.execute(select(orm.AttemptRow.__table__)).mappings().one()
        refused = connection.execute(select(orm.RefusalRow.model)).scalar_one()
    assert (row["model"], row["finish_reason"]) == ("simp/x\ufffdy", "a\ufffdb")
    assert (row["tags"], refused) == ({"app": "a\ufffdb"}, "x\ufffdy")


def test_flags_say_what_to_look_at(opened, settled):
    def flag(late=False, **changes):
        values = settled_values(opened(), settled(**changes), late=late)
        return settle_row("a", values)["flag"]

    assert flag() is None
    assert flag(late=True) == "late"
    assert flag(cost_pusd=None) == "unpriced"
    assert flag(cost_pusd=1001) == "over_bound"
    assert flag(tier="scale", unknown_tier=True) == "unknown_tier"
    assert flag(tier="flex") is None
    assert flag(unseen=True) == "unseen"
    assert flag(unseen=True, disputed=True) == "disputed"
    assert flag(unseen=True, late=True) == "late"
    assert flag(disputed=True) == flag(disputed=True, cost_pusd=1001) == "disputed"
    assert flag(partly_priced=True) == "partly_priced"
    for other, changes in {
        "late": {"late": True}, "unpriced": {"cost_pusd": None}, "disputed": {"disputed": True},
        "over_bound": {"cost_pusd": 1001}, "unknown_tier": {"unknown_tier": True},
    }.items():  # fmt: skip
        assert flag(partly_priced=True, **changes) == other
