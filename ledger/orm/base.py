"""The base class of all tables, whose attributes are a SQLAlchemy table's columns.

    class TeamRow(LedgerBase):
        __tablename__ = "teams"

        id: Stored[str] = define_column(primary_key=True)
        name: Stored[str | None]

`TeamRow.id` is the table's column, and SQLAlchemy accepts the class as a table:
`select(TeamRow.name).where(TeamRow.id == "a")`, `insert(TeamRow)`, `.join(TeamRow, ...)`. Nothing
is mapped and no class has instances, because importing and configuring sqlalchemy.orm would cost
every process more than most commands do.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from inspect import get_annotations
from types import UnionType
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, get_args, get_origin

from sqlalchemy import (
    Boolean,
    Column,
    ColumnClause,
    Date,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)
from sqlalchemy.types import TypeEngine

T = TypeVar("T", bound="LedgerBase")

Stored = ColumnClause  # the annotation of a column; `Column` itself must not be read from a class

# Column types for definitions without a type.
_KEPT_AS: Mapping[Any, TypeEngine[Any]] = {
    bool: Boolean(),
    bytes: LargeBinary(),
    date: Date(),
    float: Double(),
    int: Integer(),
    str: String(),
}


class _ColumnDefinition(NamedTuple):
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def define_column(*arguments: Any, **options: Any) -> Any:
    """Return the column options that an annotation `Stored[...]` does not state.

    The arguments are those of `sqlalchemy.Column`. The name is the attribute's unless it is the
    first argument. The column is nullable if its annotation includes `None`. The type follows the
    annotation unless one is given.
    """
    return _ColumnDefinition(arguments, options)


class LedgerBase:
    """Base class of the tables. `__table_args__` is indexes, constraints, then options."""

    metadata: ClassVar[MetaData] = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    __tablename__: ClassVar[str]
    __table_args__: ClassVar[Any] = ()
    __table__: ClassVar[Table]

    def __init_subclass__(cls) -> None:
        """Create the table from the class's columns, with those of mixed-in classes first.

        If a column is defined twice, the definition that Python's attribute lookup finds first
        counts.
        """
        super().__init_subclass__()
        columns: dict[str, Column[Any]] = {}
        for owner in (*cls.__mro__[1:], cls):
            for name, column in _columns_of(owner):
                if name not in columns or owner is cls:
                    columns[name] = column
        given = cls.__table_args__
        items, options = ((), given) if isinstance(given, dict) else (given, {})
        if items and isinstance(items[-1], dict):
            *items, options = items
        table = Table(cls.__tablename__, cls.metadata, *columns.values(), *items, **options)
        cls.__table__ = table
        for name, column in columns.items():
            setattr(cls, name, column)

    @classmethod
    def append_column(cls, name: str, kept_as: TypeEngine[Any]) -> None:
        """Add a nullable column after the existing ones."""
        column = Column(name, kept_as, key=name)
        cls.__table__.append_column(column)
        setattr(cls, name, column)

    @classmethod
    def __clause_element__(cls) -> Table:
        """Return the table. SQLAlchemy calls this for objects that stand for a table."""
        return cls.__table__


class _TableAlias:
    """A table under an alias, with its columns as attributes."""

    def __init__(self, table: type[LedgerBase]) -> None:
        self.__table__ = table.__table__.alias()
        for column in self.__table__.columns:
            setattr(self, column.key, column)

    def __clause_element__(self) -> Any:
        return self.__table__


def aliased(table: type[T]) -> type[T]:
    """Return the table under an alias, for a query that uses it twice."""
    return cast("type[T]", _TableAlias(table))


def _columns_of(owner: type) -> Iterator[tuple[str, Column[Any]]]:
    """Yield the columns that a class itself defines, with their attribute names."""
    for name, annotation in get_annotations(owner).items():
        origin: Any = get_origin(annotation)
        if origin is Stored:
            (kind,) = get_args(annotation)
            yield name, _make_column(name, kind, owner.__dict__.get(name))


def _make_column(name: str, kind: Any, defined: _ColumnDefinition | None) -> Column[Any]:
    arguments, options = ((), {}) if defined is None else defined
    members = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    options = {"nullable": type(None) in members, "key": name, **options}
    if not (arguments and isinstance(arguments[0], str)):
        arguments = (name, *arguments)
    if members[0] in _KEPT_AS and not any(map(_is_type, arguments)):
        arguments = (arguments[0], _KEPT_AS[members[0]], *arguments[1:])
    return Column(*arguments, **options)


def _is_type(given: Any) -> bool:
    return isinstance(given, TypeEngine) or (
        isinstance(given, type) and issubclass(given, TypeEngine)
    )
