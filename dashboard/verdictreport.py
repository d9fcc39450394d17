"""Verdict as printable HTML: its sentence, every option, and the assumption sheet.

The page is self-contained, every text is escaped, and the labels of the page are included.
"""

from collections.abc import Iterable, Sequence
from html import escape

from ledger.economics.fleet_verdict import FleetVerdict, PoolVerdict, VerdictOption
from ledger.economics.verdict_text import count_text, dollars_and_cents, sentence, shift_text

STYLE = """body{font:15px/1.5 system-ui,sans-serif;color:#1B2421;max-width:820px;margin:2rem auto;
padding:0 1rem}h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}
table{border-collapse:collapse;width:100%}
td,th{padding:.28rem .5rem;border-bottom:1px solid #dde3e0;
text-align:left;vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.b{font-weight:650}.m{color:#5b6763}svg{width:100%;height:auto}code{font-size:.88em}
.l{border:1px solid #B54708;padding:.4rem .7rem;font-weight:620;color:#7A2E0E}
.k{display:inline-block;width:1.4em;height:.28em;margin-right:.45em;vertical-align:middle}
@media (max-width:600px){td,th{padding:.2rem .25rem;font-size:.78rem}svg text{font-size:20px}}
@media print{body{margin:0;max-width:none}h2{break-after:avoid}table,svg{break-inside:avoid}}"""


def verdict_page(verdict: FleetVerdict, labels: Iterable[str], made: str) -> str:
    """Return a whole page with the verdict only."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Verdict</title><style>{STYLE}</style></head><body>"
        f'<p class="m">Breakeven: own GPUs from now on. {escape(made)}</p>'
        f"{label_lines(labels)}{verdict_section(verdict)}</body></html>"
    )


def label_lines(labels: Iterable[str]) -> str:
    """Return the page's warning labels as HTML."""
    return "".join(f'<p class="l">{escape(label)}</p>' for label in labels)


def verdict_section(verdict: FleetVerdict) -> str:
    """Return sentence, options and sheet as HTML."""
    options = "".join(_options(pool) for pool in verdict.judged)
    lines = [
        (
            line.name,
            line.pool or "all",
            "not known" if line.value is None else line.value,
            line.unit,
            str(line.source),
            " ".join(part for part in (line.origin, line.since) if part),
        )
        for line in verdict.sheet.lines
    ]
    head = ("Assumption", "Pool", "Value", "Unit", "Source", "From")
    return (
        f"<h1>{escape(sentence(verdict))}</h1>{options}"
        f"<h2>Assumptions, sheet {verdict.sheet.version}</h2>{_table(head, lines)}"
    )


def _options(pool: PoolVerdict) -> str:
    head = ("Options, a month", "GPUs", "Ops", "APIs", "Total", "Total, pro rata")
    rows = [_row(pool, option) for option in pool.options]
    shifts = " ".join(shift_text(shift, pool.assumptions) for shift in pool.shifts)
    return (
        f"<h2>Pool {escape(pool.pool)}</h2>{_table(head, rows)}"
        f'<p class="m">What would change it: {escape(shifts or "nothing within reach.")}</p>'
    )


def _row(pool: PoolVerdict, option: VerdictOption) -> tuple[str, ...]:
    name = count_text(option.gpus, pool.assumptions)
    if not option.allowed:
        return f"{name}: {option.why_not}", "", "", "", "", ""
    amounts = (option.gpu_pusd, option.ops_pusd, option.api_pusd, option.total_pusd)
    texts = ["not entered" if pusd is None else dollars_and_cents(pusd) for pusd in amounts]
    return name, *texts, dollars_and_cents(option.pro_rata_pusd or 0)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    cells = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{first}</tr>{cells}</table>"
