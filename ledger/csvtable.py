"""A reader of CSV files as spreadsheets write them: numbered lines, cells by column name.

Excel writes a byte-order mark first, some locales separate cells by semicolons, and cleared cells
leave empty lines and columns: all of that is accepted. Input that could be misread is refused:
another encoding, a cell without a column, an unclosed quote.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

SIZE_LIMIT = 16 * 1024 * 1024  # bytes
SEPARATORS = ";\t,"
_MARKS_16 = (b"\xff\xfe", b"\xfe\xff")


class CsvTableError(ValueError):
    """A file that is not a table; the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class CsvLine:
    """One line of a table: its number in the file, from 1, and stripped cells by column name."""

    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A parsed table. `header` is the number of the line that names the columns."""

    header: int
    columns: tuple[str, ...]
    lines: tuple[CsvLine, ...]


def read_table(data: bytes, name: str, faults: list[str]) -> CsvTable:
    """Return the parsed table, and append faults of single lines to `faults`.

    Faults are prefixed with `name` if it is not empty. Raises `CsvTableError` for a file that is
    not a table.
    """
    prefix = f"{name}: " if name else ""
    text = _decode_table(data, prefix)
    records = _records(text, prefix)
    if not records:
        raise CsvTableError(f"{prefix}the file is empty")
    header, first = records[0]
    while first and not first[-1]:
        first.pop()
    columns = [cell.lower() for cell in first]
    for place, column in enumerate(columns, start=1):
        if not column:
            faults.append(f"{prefix}line {header}: column {place} has no name")
        elif columns.index(column) < place - 1:
            faults.append(f"{prefix}line {header}, column `{column}`: is named twice")
    lines = []
    for number, cells in records[1:]:
        for place, cell in enumerate(cells[len(columns) :], start=len(columns) + 1):
            if cell:
                words = f"`{cell}` in column {place}, which has no name: a comma inside a number?"
                faults.append(f"{prefix}line {number}: {words}")
        lines.append(CsvLine(number, dict(zip(columns, cells, strict=False))))
    return CsvTable(header, tuple(columns), tuple(lines))


def _decode_table(data: bytes, prefix: str) -> str:
    if len(data) > SIZE_LIMIT:
        raise CsvTableError(f"{prefix}larger than {SIZE_LIMIT >> 20} MiB")
    if data.startswith(_MARKS_16):
        raise CsvTableError(f"{prefix}is UTF-16: save it as `CSV UTF-8`")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CsvTableError(f"{prefix}line {line}: is not UTF-8: save it as `CSV UTF-8`") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise CsvTableError(f"{prefix}line {line}: has a NUL character: this is not a CSV file")
    return text


def _records(text: str, prefix: str) -> list[tuple[int, list[str]]]:
    """Return every line that is not empty, with the number of its first physical line."""
    skipped = 0
    separator = ""
    if text[:4].lower() == "sep=" and len(text.splitlines()[0]) == 5:  # Excel's own first line
        separator, skipped = text[4], 1
        text = text[5:].removeprefix("\r").removeprefix("\n")
    if not separator:
        first = next((line for line in text.splitlines() if line.strip()), "")
        separator = max(SEPARATORS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    records = []
    before = 0
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                records.append((before + 1 + skipped, stripped))
            before = reader.line_num
    except csv.Error as error:
        raise CsvTableError(f"{prefix}line {before + 1 + skipped}: {error}") from None
    return records
