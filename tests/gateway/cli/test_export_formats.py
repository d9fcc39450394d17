"""Every format has an entry whose columns, rows and help hang together."""

import pytest

from gateway.cli.export_formats import EXPORT_FORMATS, ExportFormat, describe_formats
from ledger.exports.table import ColumnKind


def test_every_format_has_one_entry() -> None:
    assert list(EXPORT_FORMATS) == list(ExportFormat)


@pytest.mark.parametrize("format_", ExportFormat)
def test_the_column_that_is_added_up_is_money(format_: ExportFormat) -> None:
    traits = EXPORT_FORMATS[format_]
    column = traits.columns[traits.money_place]
    assert (column.name, column.kind) == (traits.money, ColumnKind.USD)


@pytest.mark.parametrize("format_", ExportFormat)
def test_the_help_names_every_format_with_what_it_holds(format_: ExportFormat) -> None:
    parts = [part.split(": ") for part in describe_formats().removesuffix(".").split("; ")]
    (part,) = [holds for names, holds in parts if format_ in names.split(", ")]
    assert EXPORT_FORMATS[format_].holds in part


def test_formats_of_the_same_content_stand_together() -> None:
    parts = describe_formats().split("; ")
    assert len(parts) == len({traits.holds for traits in EXPORT_FORMATS.values()})
    assert parts[0].startswith("csv, parquet")
