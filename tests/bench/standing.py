"""Where the routing bench stands: a table by cell and by kind, and a plot.

A score is avoided dollars over the bound. It counts as 0 when fewer than 99 % of what own engines
served kept the SLO, and none may exceed 1: then bound or accounting is wrong, and the run fails.
"""

import html
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cells import ATTAINMENT, Cell
from trial import ERRORS, SWEPT

ROUNDING = 1e-6
Found = dict[str, dict[str, Any]]  # by seed, then by what
ERROR_LEAST = {"model x0.7": 0.95, "model x1.3": 0.95, "scrape 1 s": 0.95, "skew 50 ms": 0.98}


def score(figures: dict[str, Any], bound: dict[str, Any], *, valid: bool = True) -> float:
    """Avoided dollars over the bound; with `valid` 0 where promises were broken."""
    if valid and figures["own_kept"] < ATTAINMENT:
        return 0.0
    return float(figures["avoided_usd"] / bound["dollars"])


def scores(found: Found, what: str, *, valid: bool = True) -> list[float]:
    return [
        score(seed[what], seed["bound"], valid=valid)
        for seed in found.values()
        if what in seed and "bound" in seed
    ]


def table(chosen: list[Cell], found: dict[str, Found]) -> tuple[str, bool]:
    """The report, and whether everything that was found reaches its must."""
    titles = (
        "cell", "n", "bound/bill", "min", "mean", "must", "aim", "ok", "own kept", "all kept",
        "own value", "to greedy", "least", "ok", "known", "best thr", "kept too", "to it", "least",
        "ok", "all-own", "timeout", "least-busy", "robin", "halved", "seeds",
    )  # fmt: skip
    rows, good = [titles], True
    kinds: dict[tuple[str, float], list[tuple[Cell, list[float]]]] = {}
    for cell in chosen:
        seeds = found[cell.name]
        ours = scores(seeds, "ours")
        if not ours:
            continue
        kinds.setdefault((cell.kind, cell.times), []).append((cell, ours))
        row, reached = _row(cell, seeds, ours)
        rows.append(row)
        good = good and reached
    excess = [
        f"{name} {what} seed {seed}: {ratio:.4f}"
        for name, seeds in found.items()
        for seed, runs in seeds.items()
        for what, figures in runs.items()
        if "avoided_usd" in figures and "bound" in runs
        and (ratio := score(figures, runs["bound"], valid=False)) > 1.0 + ROUNDING
    ]  # fmt: skip
    errors = _errors(found)
    parts = [_columns(rows), _columns(_kinds(kinds)), _columns(errors), _columns(_signals(found))]
    if excess:
        parts.append("ABOVE THE BOUND, so bound or accounting is wrong: " + "; ".join(excess))
    short = [row[0] for row in rows[1:] if "NO" in row]
    short += [f"{row[1]} with {row[0]}" for row in errors if "NO" in row]
    parts.append(
        "FELL SHORT: " + ", ".join(short) if short else "every cell found reaches its must"
    )
    return "\n\n".join(part for part in parts if part), not short and not excess


def _row(cell: Cell, seeds: Found, ours: list[float]) -> tuple[tuple[str, ...], bool]:
    first = seeds.get("0", {})
    bound, mine = first.get("bound", {}), first.get("ours", {})
    must, aim = cell.bars
    pairs = [
        _beside(seed["ours"], seed["greedy"])
        for seed in seeds.values()
        if {"ours", "greedy"} <= seed.keys()
    ]
    relative = min(pairs, default=None)
    swept = [
        (score(figures, bound, valid=False), figures["own_kept"] >= ATTAINMENT)
        for figures in _limits(first)
    ]
    best = max((item for item, kept in swept if kept), default=None)
    mine_then = next(iter(scores({"0": first}, "ours")), None)
    over = mine_then / best if best and mine_then is not None else None
    bar = cell.least_to_threshold
    above = over is None or bar is None or over >= bar
    halved = first.get("bound, half windows")
    enough = min(ours) >= must
    beside = relative is None or relative >= cell.least_to_greedy
    own_kept = min(seed["ours"]["own_kept"] for seed in seeds.values() if "ours" in seed)
    row = (
        cell.name,
        str(mine.get("requests", "")),
        _number(bound["dollars"] / mine["bill_usd"] if mine else None),
        _number(min(ours)),
        _number(statistics.mean(ours)),
        f"{must:g}",
        f"{aim:g}",
        ("aim" if min(ours) >= aim else "yes") if enough else "NO",
        _number(own_kept, 4),
        _number(mine.get("all_kept")),
        _number(mine["gross_usd"] / mine["bill_usd"] if mine else None),
        _number(relative),
        f"{cell.least_to_greedy:g}",
        "yes" if beside else "NO",
        _number(next(iter(scores({"0": first}, "known lengths", valid=False)), None)),
        _number(max((item for item, _ in swept), default=None)),
        _number(best),
        _number(over),
        "" if bar is None else f"{bar:g}",
        "" if over is None or bar is None else "yes" if above else "NO",
        *(
            _number(next(iter(scores({"0": first}, name, valid=False)), None))
            for name in ("all-own", "timeout", "least-busy", "round-robin")
        ),
        "" if halved is None else f"{halved['dollars'] / bound['dollars'] - 1:+.1%}",
        str(len(ours)),
    )
    return row, enough and beside and above


def _limits(first: dict[str, Any]) -> list[dict[str, Any]]:
    """What every limit came to that was tried on this seed's traffic."""
    found = [figures for name, figures in first.items() if "<" in name]
    return found + [
        point for what in SWEPT if what in first for point in first[what]["limits"]
    ]  # fmt: skip


def _signals(found: dict[str, Found]) -> list[tuple[str, ...]]:
    """Of each signal the best limit in hindsight: its share of the bound, and ours to it."""
    rows: list[tuple[str, ...]] = [("best limit of a signal", "cell", "limit", "of bound", "ours")]
    for name, seeds in found.items():
        first = seeds.get("0", {})
        for what, signal in SWEPT.items():
            if what not in first or not {"ours", "bound"} <= first.keys():
                continue
            if (best := first[what]["best"]) is None:
                rows.append((signal, name, "none keeps promises", "", ""))
                continue
            share, ours = (score(figures, first["bound"]) for figures in (best, first["ours"]))
            rows.append((signal, name, f"{best['limit']:.4g}", _number(share),
                         _number(ours / share if share else None)))  # fmt: skip
    return rows


def _beside(ours: dict[str, Any], greedy: dict[str, Any]) -> float:
    """Dollars to greedy's, which count although it may have broken promises."""
    if ours["own_kept"] < ATTAINMENT:
        return 0.0
    return float(ours["avoided_usd"] / max(1e-12, greedy["avoided_usd"]))


def _kinds(
    kinds: dict[tuple[str, float], list[tuple[Cell, list[float]]]],
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("kind", "load", "cells", "min", "mean", "must", "reached", "aim", "reached"),
    ]
    for (kind, times), group in sorted(kinds.items()):
        lows = [min(ours) for _, ours in group]
        must, aim = group[0][0].bars
        rows.append(
            (
                kind,
                f"{times:g}x",
                str(len(group)),
                _number(min(lows)),
                _number(statistics.mean(our for _, ours in group for our in ours)),
                f"{must:g}",
                f"{sum(low >= must for low in lows)}/{len(lows)}",
                f"{aim:g}",
                f"{sum(low >= aim for low in lows)}/{len(lows)}",
            )
        )
    return rows


def _errors(found: dict[str, Found]) -> list[tuple[str, ...]]:
    """What errors of the gateway's knowledge cost: against the same cell without them."""
    rows: list[tuple[str, ...]] = [("error", "cell", "of exact", "own kept", "least", "ok")]
    for what in ERRORS:
        for name, seeds in found.items():
            first = seeds.get("0", {})
            if what not in first or "ours" not in first:
                continue
            ratio = first[what]["avoided_usd"] / first["ours"]["avoided_usd"]
            kept, least = first[what]["own_kept"], ERROR_LEAST.get(what)
            ok = "" if least is None else "yes" if ratio >= least and kept >= ATTAINMENT else "NO"
            rows.append((what, name, _number(ratio), _number(kept, 4), f"{least or ''}", ok))
    return rows if len(rows) > 1 else []


def plot(path: Path, chosen: list[Cell], found: dict[str, Found]) -> None:
    """Each cell's least score as a bar, its must and aim as marks, greedy as a dot."""
    parts: list[str] = []
    top, left, wide = 30.0, 230, 420
    for cell in chosen:
        ours = scores(found.get(cell.name, {}), "ours")
        if not ours:
            continue
        must, aim = cell.bars
        colour = "#0b6e4f" if min(ours) >= must else "#b3261e"
        greedy = scores(found[cell.name], "greedy", valid=False)
        parts.append(
            f'<text x="10" y="{top + 11:.0f}">{html.escape(cell.name)}</text>'
            f'<rect x="{left}" y="{top:.0f}" width="{wide * min(ours):.1f}" height="13" '
            f'fill="{colour}"/>'
            + "".join(
                f'<rect x="{left + wide * mark:.1f}" y="{top - 1:.0f}" width="2" height="15" '
                f'fill="{shade}"/>'
                for mark, shade in ((must, "black"), (aim, "#9aa5b1"))
            )
            + "".join(
                f'<circle cx="{left + wide * item:.1f}" cy="{top + 6:.0f}" r="3" fill="#e8a33d"/>'
                for item in (greedy and [min(greedy)]) or []
            )
            + f'<text x="{left + wide + 12}" y="{top + 11:.0f}">{min(ours):.3f}</text>'
        )
        top += 18
    style = "font-family:sans-serif;font-size:12px"
    title = "share of the clairvoyant bound: ours (bar), must and aim (marks), greedy (dot)"
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="730" height="{top + 10:.0f}" '
        f'style="{style}"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="10" y="18">{title}</text>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _columns(rows: Iterable[tuple[str, ...]]) -> str:
    rows = list(rows)
    if len(rows) < 2:
        return ""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
