"""The table that issue and README speak of, from the medians of all rounds; JSON and a plot.

A bar says what must be reached (`must`) and what is aimed at (`aim`); bars that are ratios to a
peer of the same run come without a unit.
"""

import html
import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from samples import Samples

OURS, TWO, ROUTER, LITELLM, DIRECT = "ours", "two", "vllm-router", "litellm", "direct"
CALM_RATIO = 2.0  # of the upstream itself; above it the machine decides
CALM_MS = 2.5  # heartbeats later than that without any load tell of the machine


@dataclass(frozen=True)
class Line:
    """One figure of ours beside its bars; `None`: not measured, or no such bar."""

    figure: str
    value: float | None
    unit: str
    must: str
    met: bool | None
    aim: str
    aim_met: bool | None
    note: str = ""


class Medians:
    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def get(self, scene: str, target: str, figure: str) -> float | None:
        found = self._samples.get(scene, {}).get(target, {}).get(figure)
        return statistics.median(found) if found else None

    def ratio(self, scene: str, figure: str, to: str) -> float | None:
        ours, theirs = self.get(scene, OURS, figure), self.get(scene, to, figure)
        return None if ours is None or not theirs else ours / theirs

    def added(self, scene: str, figure: str = "p50_ms") -> float | None:
        """Beside the same load on the upstream itself."""
        ours, direct = self.get(scene, OURS, figure), self.get(scene, DIRECT, figure)
        return None if ours is None or direct is None else ours - direct


def lines(samples: Samples) -> list[Line]:
    """Every row of the table."""
    found = Medians(samples)
    return [
        *_cpu(found),
        *_latency(found),
        *_streams(found),
        *_memory_and_workers(found),
    ]


def table(samples: Samples, made: list[Line]) -> str:
    rows = [
        (
            made_value.figure,
            _number(made_value.value, made_value.unit),
            _verdict(made_value.must, made_value.met),
            _verdict(made_value.aim, made_value.aim_met),
            made_value.note,
        )
        for made_value in made
    ]
    text = _columns([("figure", "ours", "must", "aim", ""), *rows])
    short = [made_value.figure for made_value in made if made_value.met is False]
    unseen = [made_value.figure for made_value in made if made_value.met is None]
    verdict = "no figure that was measured fell short of what it must reach"
    if short:
        verdict = "FELL SHORT of what they must reach: " + "; ".join(short)
    if unseen:
        verdict += "\nnot measured: " + "; ".join(unseen)
    return f"{peers_table(samples)}\n\n{text}\n\n{verdict}"


def peers_table(samples: Samples) -> str:
    """All targets side by side: medians over the rounds."""
    found = Medians(samples)
    columns = (
        ("CPU ms/request", "closed 2 KB", "cpu_ms"),
        ("requests/s", "closed 2 KB", "rps"),
        ("16 KB, CPU ms", "closed 16 KB", "cpu_ms"),
        ("128 KB, CPU ms", "closed 128 KB", "cpu_ms"),
        ("400 KB of 60 messages, CPU ms", "closed 400 KB", "cpu_ms"),
        ("2 KB beside such, ms later at p99", "beside", "delay_ms"),
        ("p50 ms at 100/s", "paced", "p50_ms"),
        ("TTFT p50 ms", "first", "p50_ms"),
        ("TTFT p99 ms", "first", "p99_ms"),
        ("the same, busy disk", "synced", "p99_ms"),
        ("CPU us/chunk dense", "dense", "cpu_us"),
        ("CPU us/delivery dense", "dense", "read_us"),
        ("chunks/s dense", "dense", "chunks_per_s"),
        ("transit p99 ms", "sparse", "transit_p99_ms"),
        ("slowest TTFT x", "sparse", "slowest_first_ratio"),
        ("writes x", "sparse", "writes_ratio"),
        ("waited for a core, share", "sparse", "waited_share"),
        ("CPU us/chunk sparse", "sparse", "cpu_us"),
        ("RSS MB", "sparse", "rss_mb"),
        ("PSS MB", "sparse", "pss_mb"),
        ("USS MB", "sparse", "uss_mb"),
        ("open 4 s after hang-up", "hung up", "open_after_4s"),
        ("1,000 at once, TTFT p50 ms", "at once", "first_p50_ms"),
        ("1,000 at once, slowest x", "at once", "slowest_first_ratio"),
        ("kept for who does not read, MB", "stalled", "kept_mb"),
    )
    targets = [
        DIRECT,
        OURS,
        *sorted({t for s in samples.values() for t in s} - {DIRECT, OURS, TWO}),
    ]
    rows = [("", *targets)]
    for title, scene, figure in columns:
        cells = [_number(found.get(scene, target, figure), "") for target in targets]
        if any(cells):
            rows.append((title, *cells))
    parts = samples.get("closed 2 KB", {}).get(OURS, {})
    shares = [
        f"{name.partition('.')[2]} {statistics.median(values):.3f}"
        for name, values in sorted(parts.items())
        if name.startswith("cpu_ms.")
    ]
    return f"{_columns(rows)}\n\nours, CPU ms per request by process: {', '.join(shares)}"


def loads(samples: Samples) -> tuple[float, float, float]:
    """Least, median and most of the machine's load averages, one a scene and target."""
    found = [
        load
        for targets in samples.values()
        for figures in targets.values()
        for load in figures.get("machine_load", ())
    ]
    if not found:
        return 0.0, 0.0, 0.0
    return min(found), statistics.median(found), max(found)


def candidates(samples: Samples) -> int | None:
    """The fewest that reached the objective in a decision behind a scene of whole answers."""
    found = [
        count
        for targets in samples.values()
        for figures in targets.values()
        for count in figures.get("candidates", ())
    ]
    return None if not found else int(min(found))


def write(path: Path, samples: Samples, made: list[Line], about: dict[str, Any]) -> None:
    document = {
        "about": about,
        "figures": [asdict(made_value) for made_value in made],
        "samples": samples,
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def plot(path: Path, samples: Samples) -> None:
    """Bars of CPU time, on a logarithmic scale, as plain SVG."""
    found = Medians(samples)
    groups = (
        ("CPU ms per request, 2 KB", "closed 2 KB", "cpu_ms"),
        ("CPU us per chunk, 1,000 streams x 50/s", "dense", "cpu_us"),
        ("p99 chunk transit ms, 1,000 streams x 5/s", "sparse", "transit_p99_ms"),
        ("RSS MB with 1,000 streams", "sparse", "rss_mb"),
    )
    parts: list[str] = []
    top = 10.0
    for title, scene, figure in groups:
        values = {
            target: value
            for target in samples.get(scene, {})
            if (value := found.get(scene, target, figure)) is not None
        }
        parts.append(f'<text x="10" y="{top + 16:.0f}" font-weight="bold">{title}</text>')
        top += 24
        most = max(values.values(), default=1.0) or 1.0
        for target, value in values.items():
            width = 420 * value / most
            colour = "#0b6e4f" if target == OURS else "#9aa5b1"
            parts.append(
                f'<text x="10" y="{top + 13:.0f}">{html.escape(target)}</text>'
                f'<rect x="120" y="{top:.0f}" width="{max(width, 1):.1f}" height="16" '
                f'fill="{colour}"/>'
                f'<text x="{128 + width:.0f}" y="{top + 13:.0f}">{_number(value, "")}</text>'
            )
            top += 20
        top += 14
    style = "font-family:sans-serif;font-size:13px"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{top:.0f}" style="{style}">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )
    path.write_text(svg, encoding="utf-8")


def _cpu(found: Medians) -> Iterable[Line]:
    scene = "closed 2 KB"
    to_router, to_litellm = (
        found.ratio(scene, "cpu_ms", ROUTER),
        found.ratio(scene, "cpu_ms", LITELLM),
    )
    spent, worker = found.get(scene, OURS, "cpu_ms"), found.get(scene, OURS, "cpu_ms.worker")
    note = "" if spent is None else f"{spent:.3f} ms, of it the worker {worker or 0:.3f}"
    yield _at_most("CPU per request, 2 KB, to vllm-router's", to_router, "x", 2.0, 1.0, note)
    yield _at_most("CPU per request, 2 KB, to LiteLLM's", to_litellm, "x", 1 / 40, None)
    long, spent = (
        found.ratio("closed 400 KB", "cpu_ms", ROUTER),
        found.get("closed 400 KB", OURS, "cpu_ms"),
    )
    note = "" if spent is None else f"{spent:.2f} ms, 60 messages"
    yield _at_most("CPU per request, 400 KB, to vllm-router's", long, "x", 3.0, None, note)
    later = found.get("beside", OURS, "delay_ms")
    yield _at_most("p99 of 2 KB beside 400 KB, later by", later, "ms", 2.0, None)
    chunk, spent = found.ratio("dense", "cpu_us", ROUTER), found.get("dense", OURS, "cpu_us")
    note = "" if spent is None else f"{spent:.1f} us; the aim is nginx's, which is not on PyPI"
    yield _at_most("CPU per chunk, 1,000 x 50/s, to vllm-router's", chunk, "x", 1.3, None, note)
    read, spent = found.ratio("dense", "read_us", ROUTER), found.get("dense", OURS, "read_us")
    share, peer = (found.get("dense", name, "reads_ratio") for name in (OURS, ROUTER))
    note = (
        ""
        if spent is None
        else f"{spent:.1f} us; {share:.2f} deliveries a chunk, it {peer or 0:.2f}"
    )
    yield _at_most("CPU per delivery, 1,000 x 50/s, likewise", read, "x", 1.3, None, note)


def _latency(found: Medians) -> Iterable[Line]:
    yield _at_most("added TTFT p50 at 100/s", found.added("first"), "ms", 0.9, 0.6)
    yield _at_most("added TTFT p99 at 100/s", found.added("first", "p99_ms"), "ms", 3, 2)
    ratio = found.ratio("first", "p99_ms", ROUTER)
    yield _at_most("TTFT p99 at 100/s, to vllm-router's", ratio, "x", 1.3, 1)
    wrote = found.get("synced", OURS, "disk_mb_per_s")
    note = "" if wrote is None else f"beside a process that wrote and synced {wrote:.0f} MB/s"
    beside = found.get("synced", OURS, "p99_ms")
    yield _at_most("TTFT p99 at 100/s, beside a busy disk", beside, "ms", 5, 3, note)
    disk = found.get("paced", OURS, "fsync_ms")
    lost = found.get("paced", OURS, "waited_ms") or 0
    note = "" if disk is None else f"fsync beside it {disk:.2f} ms; {lost:.2f} ms waited for a core"
    yield _at_most(
        "added p50 at 100/s", found.added("paced"), "ms", 3 + (disk or 0), 1 + (disk or 0), note
    )


def _streams(found: Medians) -> Iterable[Line]:
    def get(figure: str) -> float | None:
        return found.get("sparse", OURS, figure)

    lost = get("waited_share")
    note = "" if lost is None else f"the worker waited {lost:.0%} of the time for a core"
    yield _at_most("p99 chunk transit, 1,000 x 5/s", get("transit_p99_ms"), "ms", 10, 4, note)
    slowest = [
        f"{name} {found.get('sparse', name, 'slowest_first_ms') or 0:.1f} ms"
        for name in (OURS, ROUTER, DIRECT)
        if found.get("sparse", name, "slowest_first_ms") is not None
    ]
    ratio, note = get("slowest_first_ratio"), ", ".join(slowest)
    direct = found.get("sparse", DIRECT, "slowest_first_ratio")
    if direct is not None and direct > CALM_RATIO:
        ratio, note = None, f"void: the upstream alone {direct:.1f} x; {note}"
    yield _at_most("slowest TTFT to the median", ratio, "x", 3, 2, note)
    at_once = found.get("at once", OURS, "slowest_first_ratio")
    yield _at_most("slowest TTFT to the median, all at once", at_once, "x", 3, None)
    ratio = get("writes_ratio")
    met = None if ratio is None else ratio >= 0.95
    yield Line("downstream writes to upstream chunks", ratio, "x", ">= 0.95", met, "", None)
    left = found.get("hung up", OURS, "open_after_1s")
    met = None if left is None else left == 0
    yield Line("upstream requests open 1 s after a hang-up", left, "", "0", met, "", None)


def _memory_and_workers(found: Medians) -> Iterable[Line]:
    rss = found.get("sparse", OURS, "rss_mb")
    yield _at_most("RSS of a worker with 1,000 streams", rss, "MB", 150, None)
    kept, asked = found.get("stalled", OURS, "kept_mb"), found.get("stalled", OURS, "asked_mb")
    note = "" if asked is None else f"of {asked:.0f} MB asked for by who reads nothing"
    yield _at_most("kept for clients that do not read", kept, "MB", 64, None, note)
    grown, count = found.get("growth", OURS, "growth_mb"), found.get("growth", OURS, "requests")
    note = "" if count is None else f"over {count:,.0f} requests after warm-up"
    yield _at_most("RSS growth", grown, "MB", 1.05, None, note)  # 1 MiB
    for size in ("16 KB", "128 KB"):
        yield _blocked(found, size)
    item, two = (found.get("two workers", target, "cpu_ms") for target in (OURS, TWO))
    ratio = None if not item or two is None else two / item
    yield _at_most("CPU per request, 2 workers to 1", ratio, "x", 1.1, None)
    share = found.get("two workers", TWO, "least_share")
    met = None if share is None else share >= 0.4
    yield Line("load of the less busy of 2 workers", share, "share", ">= 0.40", met, "", None)


def _blocked(found: Medians, size: str) -> Line:
    """By heartbeats; on a machine too busy for them by the worker's CPU time for one request.

    A request cannot compute longer in one go than it computes in all.
    """
    block, calm = (found.get(f"blocked {size}", OURS, name) for name in ("block_ms", "calm_p99_ms"))
    spent = found.get(f"closed {size}", OURS, "cpu_ms.worker")
    note = "" if calm is None else f"heartbeat p99 {calm:.2f} ms without prompts, {block:.2f} with"
    if calm is not None and calm > CALM_MS:
        block = spent
        note = f"the worker's CPU time for it; this machine is too busy: {note}"
    return _at_most(f"event loop blocked by a {size} prompt", block, "ms", 5, None, note)


def _at_most(
    figure: str, value: float | None, unit: str, must: float, aim: float | None, note: str = ""
) -> Line:
    def reached(bar: float | None) -> bool | None:
        return None if bar is None or value is None else value <= bar

    def word(bar: float | None) -> str:
        return "" if bar is None else f"<= {bar:.4g}"

    return Line(figure, value, unit, word(must), reached(must), word(aim), reached(aim), note)


def _verdict(bar: str, met: bool | None) -> str:
    return f"{bar} {'yes' if met else 'NO'}" if bar and met is not None else bar


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f} {unit}".strip()


def _columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width) if place < 4 else cell
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
