"""What was written once is there again, and whoever writes on goes on from there."""

from kept_books import KeptBooks
from sqlalchemy import delete, func, insert, select

from ledger.orm import tables as orm


def content(engine):
    with engine.connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))
            for table in orm.LedgerBase.metadata.sorted_tables
        }


def empty(engine) -> None:
    with engine.begin() as connection:
        for table in reversed(orm.LedgerBase.metadata.sorted_tables):
            connection.execute(delete(table))


def test_a_copy_is_what_was_written_and_can_be_written_to(
    engine, tmp_path, write, opened, settled, refused, seal_all, seal_findings
) -> None:
    asked = []

    def make(engine):
        asked.append(engine)
        write(engine, opened(1), settled(1), opened(2), refused(3))
        seal_all(engine)
        return {"rows": [1]}

    kept = KeptBooks(tmp_path)
    first = kept.fill("a", engine, make)
    first["rows"].append(2)
    before = content(engine)
    assert sum(map(len, before.values())) > 5
    empty(engine)
    assert kept.fill("a", engine, make) == {"rows": [1]}
    assert len(asked) == 1
    assert content(engine) == before
    write(engine, opened(5), settled(5))
    seal_all(engine)
    assert seal_findings(engine) == []
    with engine.begin() as connection:
        number = connection.execute(select(func.max(orm.PriceVersionRow.version))).scalar() or 0
        row = {"version": number + 1, "name": "a", "since_us": 0, "source": "", "price": {},
               "recorded_us": 0}  # fmt: skip
        connection.execute(insert(orm.PriceVersionRow), [row])
    kept.fill("b", engine, asked.append)
    assert len(asked) == 2, "other books are made anew"
