"""Totals and sums are exact Python integers on both databases, beyond 64 bits and below zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, MetaData, Table, create_engine, insert, select, text

from ledger.orm.types import WideInteger, exact_sum

LARGE = 10**37 + 7
BIGINT = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture
def numbers(engine):
    metadata = MetaData()
    table = Table("numbers", metadata, Column("row", BigInteger), Column("total", WideInteger))
    metadata.create_all(engine)
    yield table
    metadata.drop_all(engine)


@pytest.mark.each_database
@pytest.mark.parametrize("value", [0, -1, LARGE, -LARGE, None])
def test_totals_come_back_as_they_went_in(engine, numbers, value):
    with engine.begin() as connection:
        connection.execute(insert(numbers), [{"row": 1, "total": value}])
        assert connection.execute(select(numbers.c.total)).scalar_one() == value


@pytest.mark.each_database
@pytest.mark.parametrize("values", [[], [5], [2**63 - 1] * 3, [-(2**63), 2**63 - 1, -7], [None, 3]])
def test_sums_are_exact(engine, numbers, values):
    with engine.begin() as connection:
        if values:
            connection.execute(insert(numbers), [{"row": value} for value in values])
        found = connection.execute(select(exact_sum(numbers.c.row))).scalar_one()
    assert found == sum(value or 0 for value in values)
    assert isinstance(found, int)


@given(st.lists(BIGINT, min_size=1, max_size=30))
def test_limbs_add_up_for_any_rows(values):
    engine = create_engine("sqlite://")
    table = Table("numbers", MetaData(), Column("row", BigInteger))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE numbers (row BIGINT)"))
        connection.execute(insert(table), [{"row": value} for value in values])
        assert connection.execute(select(exact_sum(table.c.row))).scalar_one() == sum(values)
    engine.dispose()
