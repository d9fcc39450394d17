"""CSV as RFC 4180 has it: another reader gets back what was written, and no cell is a formula."""

import csv
import io
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.exports.delimited import csv_lines, decimal_text, text_cell, write_csv
from ledger.exports.table import ColumnKind, ExportColumn

DANGEROUS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "=cmd|' /C calc'!A0")
STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_formula_is_defused_in_a_text_and_only_there(text: str) -> None:
    columns = (
        ExportColumn("name"),
        ExportColumn("cost_usd", ColumnKind.USD),
        ExportColumn("n", ColumnKind.QUANTITY),
    )
    lines = "".join(csv_lines(columns, [(text, -5, -7)]))
    assert read(lines)[1] == [f"'{text}", "-0.000000000005", "-7.0"]
    assert not read(lines)[1][0].startswith(STARTS)


def test_negative_control_plain_csv_would_hand_the_formula_on() -> None:
    plain = io.StringIO(newline="")
    csv.writer(plain).writerow(DANGEROUS)
    assert all(cell.startswith(STARTS) for cell in read(plain.getvalue())[0])


def test_lines_end_as_the_standard_says_and_null_is_no_empty_text() -> None:
    columns = (
        ExportColumn("a"),
        ExportColumn("b", ColumnKind.INTEGER),
        ExportColumn("c", ColumnKind.FLAG),
    )
    lines = list(csv_lines(columns, [("", None, True), (None, 3, False)]))
    assert lines == ['"a","b","c"\r\n', '"",,true\r\n', ",3,false\r\n"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back(text: str) -> None:
    (found,) = read(text_cell(text) + "\r\n")[0]
    assert found.removeprefix("'") == text if text.startswith("'") else True
    assert (found.removeprefix("'")) == text
    assert not found.startswith(STARTS)


def test_kinds() -> None:
    columns = tuple(ExportColumn(kind.name, kind) for kind in ColumnKind)
    row = {
        "TEXT": 'a "b"; =c', "INTEGER": 7, "FLAG": False, "INSTANT": 1_500_000,
        "SECOND": 1_000_000, "USD": 10**25 + 1, "PRICE": Fraction(55, 10), "QUANTITY": 70_000,
    }  # fmt: skip
    _, line = csv_lines(columns, [[row[column.name] for column in columns]])
    assert read(line)[0] == [
        'a "b"; =c', "7", "false", "1970-01-01T00:00:01.500000Z", "1970-01-01T00:00:01Z",
        "10000000000000.000000000001", "0.0000000000055", "70000.0",
    ]  # fmt: skip


@given(st.integers(-(10**30), 10**30))
def test_money_is_exact_and_never_has_an_exponent(pusd: int) -> None:
    _, line = csv_lines((ExportColumn("usd", ColumnKind.USD),), [(pusd,)])
    whole, _, places = line.strip().partition(".")
    assert int(whole + places) == pusd
    assert len(places) == 12


def test_decimals_round_half_even_beyond_their_places() -> None:
    assert decimal_text(Fraction(1, 3), 5) == "0.33333"
    assert decimal_text(Fraction(-5, 10**6), 5) == "0.0"
    assert decimal_text(Fraction(15, 10**6), 5) == "0.00002"
    assert decimal_text(-3, 5) == "-3.0"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        list(csv_lines((ExportColumn("a"),), [("x", "y")]))


def test_a_file_has_all_lines_and_stays_open() -> None:
    columns, rows = (ExportColumn("name"), ExportColumn("n", ColumnKind.INTEGER)), [("\u00fc", 1)]
    file = io.BytesIO()
    write_csv(file, columns, iter(rows))
    assert file.getvalue().decode("utf-8") == "".join(csv_lines(columns, rows))
    assert not file.closed
