"""Recorded traffic from a file: published traces as their publishers write them, and our own form.

    Azure      TIMESTAMP,ContextTokens,GeneratedTokens            CSV, ISO time
    BurstGPT   Timestamp,Model,Request tokens,Response tokens,... CSV, seconds
    Mooncake   timestamp,input_length,output_length,hash_ids      JSONL, milliseconds
    ours       timestamp_s,input_tokens,output_tokens             CSV or JSONL, seconds, and where
               known model, team (or client_id), max_tokens, prefix_block_hashes_512tok, session
    ledger     opened_at,model,team_id,input_tokens,...           CSV of `breakeven ledger export`

Which it is, the names of its columns say. A file that ends in `.gz` is read as it is. What a row
says wrong is told by line and column, and no row is left out in silence: `TraceTraffic.left_out`
counts those without an answer, which are failures of the system that was traced.
"""

import csv
import gzip
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from gateway.whatif.traffic import Arrival
from ledger.instants import instant_us

WEEK_US = 7 * 86_400 * 1_000_000
EPOCH_S = 1e9  # seconds from which on a plain number counts from the epoch (2001)
LONGEST_TOKENS = 100_000_000
_MISSING = ("", None)


class TraceError(Exception):
    """The file cannot be read as a trace; the text names line, column and remedy."""


class TraceFormat(NamedTuple):
    """Columns of one file format; `scale` converts times to seconds (`None`: ISO time)."""

    name: str
    at: str
    prompt: str
    output: str
    scale: float | None = 1.0
    model: str = ""
    tenants: tuple[str, ...] = ()
    most: str = ""
    prefix: str = ""
    session: str = ""


FORMS = (
    TraceFormat(
        "ours",
        "timestamp_s",
        "input_tokens",
        "output_tokens",
        1.0,
        "model",
        ("team", "client_id"),
        "max_tokens",
        "prefix_block_hashes_512tok",
        "session",
    ),
    TraceFormat("Azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", None),
    TraceFormat("BurstGPT", "Timestamp", "Request tokens", "Response tokens", 1.0, "Model"),
    TraceFormat("Mooncake", "timestamp", "input_length", "output_length", 1e-3, prefix="hash_ids"),
    TraceFormat(
        "ledger", "opened_at", "input_tokens", "output_tokens", None, "model", ("team_id",)
    ),
)


@dataclass(frozen=True, slots=True)
class TraceTraffic:
    """Arrivals in order of time, from 0 on; `left_out` rows had no prompt or no answer.

    `start_s` is the time of the first one in seconds since the epoch, if the file has it.
    """

    form: str
    arrivals: tuple[Arrival, ...]
    left_out: int
    start_s: float | None = None

    @property
    def came_us(self) -> int | None:
        """Return when the first request arrived; policies' hours use it. `None` if unknown."""
        return None if self.start_s is None else int(1e6 * self.start_s)

    def start_us(self, now_us: int) -> int:
        """Return the latest time up to now at the same hour and weekday; now if unknown.

        Prices and budgets are those of today, whenever the trace was recorded.
        """
        if self.start_s is None:
            return now_us
        return now_us - (now_us - int(1e6 * self.start_s)) % WEEK_US


def read_trace(path: Path, *, most: int | None = None) -> TraceTraffic:
    """Read a trace, at most the `most` earliest requests. Raises `TraceError`."""
    try:
        with _open_trace(path) as file:
            return _read(path, file, most)
    except (OSError, EOFError) as error:
        raise TraceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path}: not UTF-8 text; name a CSV or JSONL file, or one in gzip"
        ) from error


def _open_trace(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read(path: Path, file: TextIO, most: int | None) -> TraceTraffic:
    first = next((line for line in file if line.strip()), "")
    if not first:
        raise TraceError(f"{path} is empty")
    lines = itertools.chain([first], file)
    rows = _documents(path, lines) if first.lstrip().startswith("{") else _table(path, lines)
    head = next(rows)
    form = _form(path, head[1])
    found, left_out = [], 0
    for number, row in itertools.chain([head], rows):
        arrival = _arrival(f"{path}:{number}", row, form)
        if arrival is None:
            left_out += 1
        else:
            found.append(arrival)
    if not found:
        raise TraceError(f"{path}: none of its {left_out} rows has both a prompt and an answer")
    found.sort(key=lambda finding: finding.at_s)
    start_s = found[0].at_s
    kept = found if most is None else found[:most]
    moved = tuple([kept_value._replace(at_s=kept_value.at_s - start_s) for kept_value in kept])
    told = form.scale is None or start_s >= EPOCH_S
    return TraceTraffic(form.name, moved, left_out, start_s if told else None)


def _table(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(lines)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise TraceError(f"{path}:{reader.line_num}: {error}") from error
    if reader.line_num <= 1:
        raise TraceError(f"{path} has column names and no request")


def _documents(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise TraceError(f"{path}:{number}: not JSON: {error.msg}") from error
        if not isinstance(row, dict):
            raise TraceError(f"{path}:{number}: a line of JSONL is one object in {{}}")
        yield number, row


def _form(path: Path, row: Mapping[str, Any]) -> TraceFormat:
    for form in FORMS:
        if {form.at, form.prompt, form.output} <= row.keys():
            return form
    ours = FORMS[0]
    there = ", ".join(map(str, row)) or "nothing"
    nearest = max(
        FORMS, key=lambda format_: len({format_.at, format_.prompt, format_.output} & row.keys())
    )
    missing = [name for name in (nearest.at, nearest.prompt, nearest.output) if name not in row]
    if len(missing) < 3:
        name = ", ".join(f"`{column}`" for column in missing)
        raise TraceError(f"{path}: a trace as {nearest.name} has also {name}; its columns: {there}")
    raise TraceError(
        f"{path}: no known trace; give it the columns `{ours.at}`, `{ours.prompt}` and"
        f" `{ours.output}`. Its columns: {there}"
    )


def _arrival(where: str, row: Mapping[str, Any], form: TraceFormat) -> Arrival | None:
    """Return the arrival of a row, or `None` if it has no prompt or no answer."""
    prompt = _tokens(where, form.prompt, row[form.prompt])
    output = _tokens(where, form.output, row[form.output])
    at_s = _time(where, form, row[form.at])
    if prompt < 1 or output < 1:
        return None
    most = row.get(form.most) if form.most else None
    tenant = next((row[name] for name in form.tenants if row.get(name) not in _MISSING), "")
    return Arrival(
        at_s,
        prompt,
        output,
        str(row.get(form.model) or "") if form.model else "",
        str(tenant),
        None if most in _MISSING else max(1, _tokens(where, form.most, most)),
        _prefix(where, form.prefix, row.get(form.prefix)) if form.prefix else (),
        session=str(row.get(form.session) or "") if form.session else "",
    )


def _tokens(where: str, column: str, value: Any) -> int:
    """Return a whole number of tokens; a missing value counts as 0."""
    if value in _MISSING:
        return 0
    try:
        tokens = float(value)
        is_count = 0 <= tokens <= LONGEST_TOKENS and tokens == int(tokens)
    except (TypeError, ValueError):
        is_count = False
    if not is_count:
        raise TraceError(f"{where}: `{column}` is {value!r}, not a whole number of tokens")
    return int(tokens)


def _time(where: str, form: TraceFormat, value: Any) -> float:
    try:
        if form.scale is not None:
            at_s = form.scale * float(value)
        else:
            at_s = instant_us(str(value)) / 1e6
    except (TypeError, ValueError):
        at_s = nan
    if not -1e12 < at_s < 1e12:
        kind = "an ISO time" if form.scale is None else "a number"
        raise TraceError(f"{where}: `{form.at}` is {value!r}, not {kind}")
    return at_s


def _prefix(where: str, column: str, value: Any) -> tuple[int, ...]:
    if value in _MISSING:
        return ()
    parts = value.split() if isinstance(value, str) else value
    try:
        return tuple([int(part) for part in parts])
    except (TypeError, ValueError):
        raise TraceError(f"{where}: `{column}` holds whole numbers, not {value!r}") from None
