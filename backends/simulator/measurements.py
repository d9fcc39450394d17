"""Measured requests of an engine: the input of a fit, from files of one row a request.

CSV, also as `.gz`, with the columns

    start_s (or timestamp_s)   when it was sent, seconds from the start of its run
    input_tokens, output_tokens
    ttft_s, e2e_s              seconds from sending to the first token, and to the end
    offered_rate               requests per second of its run; without it a file is one run
    queue_s                    where known: from sending until it was scheduled

or the JSON that `breakeven engine bench` writes.
"""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

STARTS = ("start_s", "timestamp_s")
NEEDED = ("input_tokens", "output_tokens", "ttft_s", "e2e_s")


class MeasurementError(Exception):
    """A file of measurements that cannot be read; the text names the line and the column."""


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    start_s: float
    prompt_tokens: int
    output_tokens: int
    ttft_s: float
    e2e_s: float
    queue_s: float | None = None  # sent until first scheduled

    @property
    def tpot_s(self) -> float:
        return (self.e2e_s - self.ttft_s) / max(1, self.output_tokens - 1)


@dataclass(frozen=True, slots=True)
class MeasurementSummary:
    """The compared figures: medians over requests, output tokens per second over the run."""

    ttft_s: float
    tpot_s: float
    tokens_per_s: float
    prefill_s: float | None  # TTFT without the queue

    def ratios(self, observed: "MeasurementSummary") -> list[float]:
        """Return simulated over observed, in the order of the fields."""
        ratios = [
            self.ttft_s / observed.ttft_s,
            self.tpot_s / observed.tpot_s,
            self.tokens_per_s / observed.tokens_per_s,
        ]
        if self.prefill_s is not None and observed.prefill_s is not None:
            ratios.append(self.prefill_s / observed.prefill_s)
        return ratios


def summarise(requests: Sequence[MeasuredRequest]) -> MeasurementSummary:
    end_s = max(r.start_s + r.e2e_s for r in requests)
    prefills = [r.ttft_s - r.queue_s for r in requests if r.queue_s is not None]
    return MeasurementSummary(
        median(r.ttft_s for r in requests),
        median(r.tpot_s for r in requests),
        sum(r.output_tokens for r in requests) / (end_s - min(r.start_s for r in requests)),
        median(prefills) if prefills else None,
    )


def read(path: Path) -> dict[str, list[MeasuredRequest]]:
    """Return runs by offered rate, in the order of the rates. Raises `MeasurementError`."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError) as error:
        raise MeasurementError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise MeasurementError(f"{path}: not UTF-8 text") from error
    if path.suffix == ".json":
        return _read_bench_report(path, text)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = reader.fieldnames or []
    start = next((each_name for each_name in STARTS if each_name in columns), None)
    missing = [name for name in NEEDED if name not in columns]
    if start is None or missing:
        lacks = ", ".join(f"`{name}`" for name in ([] if start else ["start_s"]) + missing)
        raise MeasurementError(f"{path}: the columns {lacks} are not there")
    runs: dict[str, list[MeasuredRequest]] = {}
    for row in reader:
        where = f"{path}:{reader.line_num}"
        runs.setdefault(row.get("offered_rate") or "run", []).append(
            _measured_request(where, row, start)
        )
    if not runs:
        raise MeasurementError(f"{path} has column names and no request")
    return runs


def _read_bench_report(path: Path, text: str) -> dict[str, list[MeasuredRequest]]:
    try:
        document = json.loads(text)
        found: list[dict[str, Any]] = document["runs"]
        runs = {
            str(run["name"]): [
                _measured_request(f"{path}: run {run['name']}", request, "start_s")
                for request in run["requests"]
            ]
            for run in found
        }
    except (ValueError, LookupError, TypeError) as error:
        raise MeasurementError(f"{path}: not what `engine bench` writes") from error
    runs = {name: requests for name, requests in runs.items() if requests}
    if not runs:
        raise MeasurementError(f"{path} has no request that was answered")
    return runs


def _measured_request(where: str, row: Mapping[str, Any], start: str) -> MeasuredRequest:
    names = (start, *NEEDED, *(["queue_s"] if row.get("queue_s") else []))
    values = []
    for name in names:
        try:
            values.append(float(row[name]))
        except (TypeError, ValueError):
            raise MeasurementError(f"{where}: `{name}` is {row[name]!r}, not a number") from None
    at_s, prompt, output, ttft_s, e2e_s, *queue = values
    if not (prompt >= 1 and output >= 1 and 0 < ttft_s <= e2e_s):
        raise MeasurementError(
            f"{where}: a request has tokens, and `ttft_s` is above 0 and at most `e2e_s`"
        )
    return MeasuredRequest(
        at_s, int(prompt), int(output), ttft_s, e2e_s, queue[0] if queue else None
    )
