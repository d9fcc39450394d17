"""Column types that tables of the ledger share.

Money in a row is BIGINT pico-USD (up to 9.2 million USD). Totals are wider: `WideInteger` is
NUMERIC(38) on PostgreSQL and decimal text on SQLite, and a Python `int` on both. SQLite must not
calculate with it, so totals are read, added in Python and written under a lock. `exact_sum(column)`
sums BIGINT money to a Python `int` on both databases; SQLite's `SUM` would overflow, so it sums two
limbs there. Never order by an `exact_sum` on SQLite, where it is text.
"""

from typing import Any

from sqlalchemy import JSON, BigInteger, Integer, Numeric, String
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

Json = JSON(none_as_null=True)
Serial = BigInteger().with_variant(Integer(), "sqlite")  # SQLite numbers INTEGER keys only

_LIMB = 10**12


class WideInteger(TypeDecorator[int]):
    """An integer of up to 38 digits: totals, balances and limits."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Numeric(38, 0))
        return dialect.type_descriptor(String(40))

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return str(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> int | None:
        del dialect
        return None if value is None else int(value)


class _Limbs(TypeDecorator[int]):
    """The result of `exact_sum`: NUMERIC on PostgreSQL, `high|low` text on SQLite."""

    impl = String
    cache_ok = True

    def process_result_value(self, value: Any | None, dialect: Dialect) -> int | None:
        if value is None or dialect.name == "postgresql":
            return 0 if value is None else int(value)
        high, _, low = str(value).partition("|")
        return int(high) * _LIMB + int(low)


class exact_sum(FunctionElement[int]):  # noqa: N801  (reads as the SQL function it compiles to)
    """The sum of one BIGINT expression as a Python `int`; 0 over no rows."""

    type = _Limbs()
    inherit_cache = True

    def __init__(self, column: ColumnElement[Any] | Any) -> None:
        super().__init__(column)


@compiles(exact_sum, "sqlite")
def _two_limbs(element: exact_sum, compiler: SQLCompiler, **kw: Any) -> str:
    inner = compiler.process(element.clauses, **kw)
    return (
        f"(coalesce(sum(({inner}) / {_LIMB}), 0) || '|' || coalesce(sum(({inner}) % {_LIMB}), 0))"
    )


@compiles(exact_sum)
def _numeric(element: exact_sum, compiler: SQLCompiler, **kw: Any) -> str:
    return f"sum({compiler.process(element.clauses, **kw)})"
