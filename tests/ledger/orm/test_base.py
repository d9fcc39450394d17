"""A class stands for its table, and says of its columns what their definitions do not."""

from datetime import date

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    UniqueConstraint,
    create_engine,
    delete,
    insert,
    select,
    update,
)

from ledger.orm.base import LedgerBase, Stored, aliased, define_column


@pytest.fixture(scope="module")
def things():
    """Two tables in a register of their own, with all that a definition may have."""

    class Own(LedgerBase):
        metadata = MetaData(naming_convention=LedgerBase.metadata.naming_convention)
        __tablename__ = "owners"

        id: Stored[int] = define_column(primary_key=True)

    class _CountedRow:
        count: Stored[int] = define_column(BigInteger, default=7)

    class _CountedTwice(_CountedRow):
        again: Stored[int] = define_column(default=8)

    class ThingRow(_CountedTwice, LedgerBase):
        metadata = Own.metadata
        __tablename__ = "things"
        __table_args__ = (
            Index(None, "name", "kind"),
            UniqueConstraint("kind", "on"),
            {"sqlite_with_rowid": False},
        )
        limit = 5  # is no column

        name: Stored[str] = define_column(primary_key=True)
        kind: Stored[str | None]
        on: Stored[date | None]
        weight: Stored[float]
        raw: Stored[bytes]
        good: Stored[bool] = define_column(default=False)
        owner: Stored[int | None] = define_column(ForeignKey("owners.id"), index=True)
        labels: Stored[str | None] = define_column("metadata", String(9))

    return Own, ThingRow


def test_columns_are_kept_as_their_annotations_say_those_mixed_in_first(things):
    columns = things[1].__table__.columns
    assert [(column.name, type(column.type), column.nullable) for column in columns] == [
        ("again", Integer, False),
        ("count", BigInteger, False),
        ("name", String, False),
        ("kind", String, True),
        ("on", Date, True),
        ("weight", Double, False),
        ("raw", LargeBinary, False),
        ("good", Boolean, False),
        ("owner", Integer, True),
        ("metadata", String, True),
    ]
    assert all(getattr(things[1], key) is column for key, column in columns.items())
    assert things[1].labels.key == "labels"
    assert {type(column.key) for column in columns} == {str}


def test_of_two_definitions_the_one_counts_that_python_finds_first(things):
    """Red before: the column of a mixin's base won over the mixin's own."""

    class _Wide:
        size: Stored[int] = define_column(BigInteger)
        note: Stored[int]
        base: Stored[int]

    class _NotedRow(_Wide):
        size: Stored[str | None]
        note: Stored[bool]

    class _Other:
        note: Stored[bytes]
        base: Stored[bytes]

    class MadeRow(_NotedRow, _Other, LedgerBase):
        metadata = things[0].metadata
        __tablename__ = "made"

        id: Stored[int] = define_column(primary_key=True)
        size: Stored[float]

    columns = MadeRow.__table__.columns
    assert [(column.name, type(column.type), column.nullable) for column in columns] == [
        ("size", Double, False),
        ("note", Boolean, False),
        ("base", Integer, False),
        ("id", Integer, False),
    ]


def test_indexes_and_constraints_are_named_by_convention(things):
    table = things[1].__table__
    assert {index.name for index in table.indexes} == {"ix_things_name_kind", "ix_things_owner"}
    assert {str(made.name) for made in table.constraints} == {
        "pk_things",
        "uq_things_kind_on",
        "fk_things_owner_owners",
    }
    assert table.dialect_options["sqlite"]["with_rowid"] is False


def test_a_class_is_taken_for_its_table(things):
    own, thing = things
    engine = create_engine("sqlite://")
    own.metadata.create_all(engine)
    row = {"name": "a", "kind": None, "on": date(2026, 1, 2), "weight": 0.5, "raw": b"x"}
    other = aliased(thing)
    with engine.begin() as connection:
        connection.execute(insert(own).values(id=3))
        connection.execute(insert(thing).values(**row, owner=3, labels="l"))
        connection.execute(insert(thing), [{**row, "name": "b", "owner": None}])
        connection.execute(update(thing).where(thing.name == "b").values(count=thing.count + 1))
        joined = select(thing.name, own.id).join(own, own.id == thing.owner)
        assert connection.execute(joined).all() == [("a", 3)]
        pairs = select(thing.name, other.name).join(other, other.count > thing.count)
        assert connection.execute(pairs).all() == [("a", "b")]
        assert connection.execute(select(thing.count, thing.good, thing.labels)).all() == [
            (7, False, "l"),
            (8, False, None),
        ]
        assert connection.execute(delete(thing)).rowcount == 2
    engine.dispose()


def test_a_column_can_follow_later(things):
    own, _ = things
    own.append_column("later", BigInteger())
    assert isinstance(own.later, Column)
    assert own.later.nullable
    assert list(own.__table__.columns.keys()) == ["id", "later"]
