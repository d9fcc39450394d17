"""Plot of a benchmark's sweep as one SVG file: throughput and p99 latencies by load.

The SVG is written as text, without a plotting library.
"""

from collections.abc import Sequence
from html import escape

from backends.engine.benchreport import BenchReport

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 70, 40, 34
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37")


def svg(bench: BenchReport) -> str:
    """Return the SVG: three panels below each other. Runs without figures are left out."""
    found = [
        (float(run.loop.rate or run.loop.at_once or place), run.point)
        for place, run in enumerate(bench.runs, 1)
        if run.point is not None
    ]
    loads = [load for load, _ in found]
    unit = "requests/s offered" if bench.is_open_loop else "requests at once"
    panels = (
        ("output tokens/s", [summary.rates.output_tokens for _, summary in found]),
        ("TTFT p99, ms", [1e3 * summary.ttft[-1].value_s for _, summary in found]),
        (
            "TPOT p99, ms",
            [1e3 * summary.tpot[-1].value_s if summary.tpot else 0.0 for _, summary in found],
        ),
    )
    title = escape(f"{bench.about.get('model', '')} at {bench.about.get('url', '')}")
    body = "".join(
        _panel(place, name, unit, loads, values) for place, (name, values) in enumerate(panels)
    )
    height = HEIGHT * len(panels) + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{LEFT}" y="20" font-size="14">{title}</text>{body}</svg>\n'
    )


def _panel(
    place: int, name: str, unit: str, loads: Sequence[float], values: Sequence[float]
) -> str:
    top, bottom = 30 + place * HEIGHT + TOP, 30 + (place + 1) * HEIGHT - BOTTOM
    most_load, most = max(loads, default=1.0) or 1.0, max(values, default=1.0) or 1.0

    def at(load: float, value: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - 20) * load / most_load
        return round(across, 1), round(bottom - (bottom - top) * value / most, 1)

    points = [at(load, value) for load, value in sorted(zip(loads, values, strict=True))]
    colour = COLOURS[place]
    line = " ".join(f"{x},{y}" for x, y in points)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points)
    ticks = "".join(
        f'<text x="{LEFT - 8}" y="{at(0, most * part)[1] + 4}" text-anchor="end">{most * part:.4g}'
        f'</text><line x1="{LEFT}" x2="{WIDTH - 20}" y1="{at(0, most * part)[1]}"'
        f' y2="{at(0, most * part)[1]}" stroke="#ddd"/>'
        for part in (0, 0.5, 1)
    )
    below = "".join(
        f'<text x="{at(load, 0)[0]}" y="{bottom + 16}" text-anchor="middle">{load:g}</text>'
        for load in loads
    )
    return (
        f'<text x="{LEFT}" y="{top - 12}" fill="{colour}">{name}, by {unit}</text>{ticks}{below}'
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
    )
