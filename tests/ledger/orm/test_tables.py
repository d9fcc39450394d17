"""One namespace holds every table, and nothing is defined that it does not name."""

from sqlalchemy import BigInteger

from ledger.orm import tables as orm


def test_every_table_is_named_in_the_namespace():
    named = {
        value.__tablename__
        for name in orm.__all__
        if hasattr(value := getattr(orm, name), "__tablename__")
    }
    assert named == set(orm.LedgerBase.metadata.tables)


def test_money_is_never_a_float():
    for table in orm.LedgerBase.metadata.tables.values():
        for column in table.columns:
            if "pusd" in column.name:
                exact = isinstance(column.type, (BigInteger, orm.WideInteger))
                assert exact, f"{table.name}.{column.name}"
