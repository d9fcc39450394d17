"""A table of days and amounts is read by its titles."""

from datetime import date
from decimal import Decimal

from ledger.invoices.files import InvoiceLine, parse


def test_a_table_is_read_by_its_titles():
    text = (
        "\ufeffDate,Model,Amount,Project,Quantity,Unit\n2026-11-03,gpt-4o,12.34,p,5000,tokens\n\n"
    )
    (line,) = parse(text).lines
    assert line == InvoiceLine(
        date(2026, 11, 3), "gpt-4o", 12_340_000_000_000, "p", Decimal(5000), "tokens"
    )


def test_days_are_those_of_utc_and_tables_may_have_semicolons():
    text = "date;amount;item\n2026-11-10T23:30:00-05:00;1.5;m\n"
    (line,) = parse(text).lines
    assert (line.day, line.amount_pusd) == (date(2026, 11, 11), 1_500_000_000_000)


def test_columns_of_one_meaning_may_repeat_what_they_say():
    (line,) = parse("date,day,amount,cost\n2026-11-01,2026-11-01T00:00Z,1.50,1.5\n").lines
    assert line.amount_pusd == 1_500_000_000_000
