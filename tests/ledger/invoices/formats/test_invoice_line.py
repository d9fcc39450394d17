"""A line says its day, item and amount; all else may be unknown."""

from datetime import date

from ledger.invoices.formats.invoice_line import InvoiceLine


def test_what_a_file_does_not_say_is_unknown_and_not_zero():
    line = InvoiceLine(date(2026, 11, 1), "m", 5)
    assert (line.project, line.quantity, line.unit, line.charge) == (None, None, None, None)
