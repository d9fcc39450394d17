"""One file of one party is there once, whoever imports it."""

from sqlalchemy import inspect


def test_a_file_has_one_place(engine):
    (unique,) = inspect(engine).get_unique_constraints("invoices")
    assert unique["column_names"] == ["digest"]
