"""What a ledger and a journal say, as plain values with names: by the code of the day it runs on.

`written_make.py` writes down what it returned when the files were made; the test compares.
"""

import base64
import csv
import io
import lzma
import tarfile
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from ledger.exports import attempts as attempt_export
from ledger.exports import focus_columns
from ledger.exports.attempts import attempt_rows
from ledger.exports.delimited import csv_lines
from ledger.exports.focus import focus_rows
from ledger.journals import frames
from ledger.journals.reader import JournalOffset, JournalReader
from ledger.orm import tables as orm
from ledger.prices.stored import every_price
from ledger.spans import DAY_US, Scope
from router.packed import unpack
from router.snapshot_codec import decode, names_of

HERE = Path(__file__).parent
BOOKS, SAID = HERE / "written.tar.xz", HERE / "written.json.xz"
LEDGER, JOURNALS = "ledger.db", "journals"
START_US = 1_780_272_000_000_000  # 2026-06-01
SPAN = Scope(START_US, START_US + 2 * DAY_US)
TABLES = (
    orm.AttemptRow,
    orm.AttemptDecisionRow,
    orm.ComparedCostRow,
    orm.RefusalRow,
    orm.PostingRow,
    orm.HoldRow,
    orm.BudgetRow,
    orm.BudgetWindowRow,
    orm.GrantRow,
    orm.GpuContractRow,
    orm.GpuHourRow,
    orm.GpuHourTeamRow,
    orm.PriceVersionRow,
    orm.KeyRow,
)


def plain(value: Any) -> Any:
    """JSON's values; a class of the router as its fields by name."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, frozenset | set):
        return sorted(map(plain, value))
    if isinstance(value, dict):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in names_of(type(value))}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def stored_decisions(connection: Connection) -> dict[str, tuple[bytes, bytes | None]]:
    """By attempt, or by request if it was refused: what was packed, and what was frozen."""
    attempts = select(
        orm.AttemptDecisionRow.attempt_id,
        orm.AttemptDecisionRow.decision,
        orm.AttemptDecisionRow.inputs,
    )
    refused = select(orm.RefusalRow.request_id, orm.RefusalRow.decision)
    stored = {name: (short, inputs) for name, short, inputs in connection.execute(attempts)}
    return stored | {name: (short, None) for name, short in connection.execute(refused)}


def read_decision(short: bytes, inputs: bytes | None) -> dict[str, Any]:
    """A decision, and what it was decided on."""
    frozen = decode(msgspec.msgpack.decode(inputs)) if inputs else None
    return {"decision": plain(unpack(msgspec.msgpack.decode(short))), "inputs": plain(frozen)}


def decisions(connection: Connection) -> dict[str, Any]:
    return {name: read_decision(*pair) for name, pair in stored_decisions(connection).items()}


def journal_frames(directory: Path) -> list[frames.Frame]:
    reader = JournalReader(directory / JOURNALS)
    return [
        frame
        for journal in reader.journals()
        for frame in reader.read(journal, JournalOffset()).frames
    ]


def journal_records(directory: Path) -> list[Any]:
    return [
        {"type": type(frame.record).__name__, **plain(frame.record)}
        for frame in journal_frames(directory)
    ]


def rows(connection: Connection) -> dict[str, Any]:
    """The tables of the books, row by row."""
    said = {}
    for table in TABLES:
        columns = table.__table__.columns
        query = select(*columns).order_by(*table.__table__.primary_key.columns)
        said[table.__tablename__] = [
            {key: plain(value) for key, value in row.items()}
            for row in connection.execute(query).mappings()
        ]
    return said


def prices(connection: Connection) -> list[Any]:
    return [plain(price) for price in every_price(connection)]


def exports(connection: Connection) -> dict[str, Any]:
    """Each export's rows as they stand in the file, every cell under its column's name."""
    return {
        name: list(csv.DictReader(export_lines(connection, name))) for name in ("attempts", "focus")
    }


def export_lines(connection: Connection, name: str) -> list[str]:
    """The lines of the file."""
    if name == "attempts":
        found = attempt_rows(connection, SPAN, _nobody)
        return list(csv_lines(attempt_export.COLUMNS, found))
    layout = focus_columns.FOCUS_1_2  # which the earlier releases wrote
    found = focus_rows(connection, SPAN, _nobody, period_us=DAY_US, layout=layout)
    return list(csv_lines(layout.columns, found))


def _nobody(_at_us: int) -> None:
    pass


BOOKS_READERS: dict[str, Callable[[Connection], Any]] = {
    "decisions": decisions, "rows": rows, "prices": prices, "exports": exports,
}  # fmt: skip


# Members that were constants of the program: nothing told brief answers from others.
CONSTANT_THEN = {"context_margin": 1.1, "brief_odds": 1.0}


def unpacked(directory: Path) -> Path:
    """The ledger and the journals as files."""
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(BOOKS.read_bytes()))) as files:
        files.extractall(directory, filter="data")
    return directory


def said_then() -> dict[str, Any]:
    return msgspec.json.decode(lzma.decompress(SAID.read_bytes()))


def difference(then: Any, now: Any, path: str = "") -> str | None:
    """Where what is read now differs; a member that did not exist then must be empty now.

    Or it has the value that the program itself had then (`CONSTANT_THEN`).
    """
    if isinstance(then, dict) and isinstance(now, dict):
        for name, value in then.items():
            if name not in now:
                return f"{path}/{name}: gone"
            if found := difference(value, now[name], f"{path}/{name}"):
                return found
        later = {name: value for name, value in now.items() if name not in then and value}
        later = {name: value for name, value in later.items() if CONSTANT_THEN.get(name) != value}
        if path.endswith("/rates"):  # a kind that no price listed then costs what another does
            later = {name: pusd for name, pusd in later.items() if pusd not in then.values()}
        return f"{path}: {later} out of nothing" if later else None
    if isinstance(then, list) and isinstance(now, list):
        if path.endswith("/beginning") and not any(now[len(then) :]):
            now = now[: len(then)]  # of a prompt nothing is kept; what is known of one has grown
        if len(then) != len(now):
            return f"{path}: {len(then)} members, now {len(now)}"
        pairs = enumerate(zip(then, now, strict=True))
        found = (difference(a, b, f"{path}/{place}") for place, (a, b) in pairs)
        return next((words for words in found if words), None)
    if then == now:
        return None
    return f"{path}: {then!r}, now {now!r}"
