"""Terminal output of `breakeven ledger report`: sentences and tables."""

from collections.abc import Sequence

from rich.console import Console

from gateway.cli.output import moment, table
from gateway.cli.verdict_table import comparators_table, options_table
from ledger.attempt_flags import UNPRICED
from ledger.economics.verdict_text import describe
from ledger.money import PUSD_PER_USD, format_usd, usd_text
from ledger.queries.reads import FlaggedAttempts
from ledger.reports.flag_sums import FlagSum
from ledger.reports.month_even import MonthEven, whole
from ledger.reports.month_outlook import MonthOutlook, month_text
from ledger.reports.report import PoolLine, Report, ReportLine
from ledger.reports.verdict_read import PeriodVerdict
from ledger.spans import HOUR_US

PLACES = 4
PARTS = {
    "api_pusd": "at APIs",
    "own_pusd": "for use of own GPUs",
    "idle_pusd": "for idle and unavailable time of own GPUs",
    "ops_pusd": "of ops",
    "adjusted_pusd": "of adjustments to bills",
}  # share of a day's spend


def show_report(out: Console, found: Report, outlook: MonthOutlook, judged: PeriodVerdict) -> None:
    """Print the report of a period with its verdict."""
    start, end = (moment(at_us) for at_us in (found.start_us, found.end_us))
    label = " (SIMULATED parts are in these figures)" if found.simulated else ""
    out.print(f"{start} to {end} UTC{label}\n")
    _show_verdict(out, judged)
    out.print()
    out.print(f"This month: {month_text(outlook, _usd)}\n")
    for title, lines in (
        ("By team", found.teams),
        ("By model", found.models),
        ("By backend", found.backends),
        ("By target", found.targets),
    ):
        out.print(_spend(title, (*lines, found.total)))
        out.print()
    for title, pools in (
        ("Own GPUs, closed hours", found.pools),
        ("Own GPUs since then, provisional", found.running),
    ):
        if pools:
            out.print(_pools(title, pools))
            out.print()
    if found.adjustments:
        sums = [(line.party, line.pusd) for line in found.adjustments]
        cells = [[name, _usd(pusd)] for name, pusd in (*sums, ("total", found.adjusted_pusd))]
        title = "Adjustments to bills, of no team"
        out.print(table(title, ("party", ">by"), cells))
        out.print()
    out.print(cost_sentence(found), markup=False, highlight=False)
    out.print()
    if found.team is not None:
        out.print(
            "Bills, idle time and whether own GPUs are worth it are of all teams; "
            f"{found.team} used {_usd(found.team_used_pusd or 0)} of these bills.",
            markup=False,
        )
        out.print()
    if found.comparators:
        out.print(comparators_table(found.comparators, _usd))
        out.print()
    if found.flags:
        out.print(_flag_sums(found.flags))
        out.print()
        out.print(_flag_table(found.flagged))
        out.print()
    else:
        out.print("No attempt has a flag.")
    out.print(f"{found.refused} requests were refused.")


def _show_verdict(out: Console, judged: PeriodVerdict) -> None:
    """Print the verdict's sentence, its basis, the options and the break-even volumes."""
    verdict = describe(judged.verdict)
    out.print(verdict["sentence"], markup=False, highlight=False)
    if judged.coverage_note is not None:
        out.print(judged.coverage_note, markup=False, highlight=False)
    if any(pool["options"] for pool in verdict["pools"]):
        out.print(options_table(verdict["pools"]))
    if judged.even:
        out.print()
        out.print(evens_table(judged.even))


def cost_sentence(found: Report) -> str:
    """Return the sentence on the period's cost and its parts; parts of zero are left out."""
    parts = [
        (sum(getattr(day, name) for day in found.days), words) for name, words in PARTS.items()
    ]
    told = ", ".join(f"{_usd(pusd)} {words}" for pusd, words in parts if pusd)
    whole = "All of it" if found.team is None else f"All that {found.team} used"
    lacks = [f"no GPU rate is known for {pool}" for pool in found.unrated]
    if found.total.unpriced:
        lacks.append(f"{found.total.unpriced:,} attempts have no price")
    missing = f" Not in it: {'; '.join(lacks)}." if lacks else ""
    return f"{whole} cost {_usd(found.total_pusd)}" + (f": {told}." if told else ".") + missing


def evens_table(lines: Sequence[MonthEven]) -> object:
    """Return the break-even volume per pool and comparator, or what is missing."""
    cells = [
        [
            line.pool, ", ".join(line.comparators) or line.against,
            *("-" if tokens is None else f"{tokens:,}" for tokens in (
                whole(line.tokens), None if line.capacity is None else int(line.capacity),
                None if line.served is None else int(line.served),
            )),
            line.state,
        ]
        for line in lines
    ]  # fmt: skip
    columns = ("pool", "against", ">break-even", ">capacity", ">served", "state")
    return table("Break-even volume, tokens a month (input + output)", columns, cells)


def _spend(title: str, lines: Sequence[ReportLine]) -> object:
    cells = [
        [line.name, f"{line.attempts:,}", f"{line.input_tokens:,}", f"{line.output_tokens:,}",
         _usd(line.cost_pusd), str(line.unpriced) if line.unpriced else "-"]
        for line in lines
    ]  # fmt: skip
    columns = (title.lower(), ">attempts", ">input tokens", ">output tokens", ">cost", ">unpriced")
    return table(title, columns, cells)


def _pools(title: str, lines: Sequence[PoolLine]) -> object:
    cells = [
        [line.pool, _share(line), f"{line.span_us / HOUR_US:.2f}",
         *(_usd(pusd) for pusd in (line.bill_pusd, line.used_pusd, line.idle_pusd,
                                   line.unavailable_pusd))]
        for line in lines
    ]  # fmt: skip
    columns = ("pool", "share", ">hours", ">bill", ">used", ">idle", ">unavailable")
    return table(title, columns, cells)


def _flag_sums(lines: Sequence[FlagSum]) -> object:
    cells = [
        [
            line.flag, f"{line.attempts:,}",
            "no price" if line.cost_pusd is None else _usd(line.cost_pusd), line.means,
        ]
        for line in lines
    ]  # fmt: skip
    return table("Flags", ("flag", ">attempts", ">booked", "meaning"), cells)


def _flag_table(lines: Sequence[FlaggedAttempts]) -> object:
    cells = [
        [line.flag, line.target, f"{line.attempts:,}",
         "no price" if line.flag == UNPRICED else _usd(line.cost_pusd)]
        for line in lines
    ]  # fmt: skip
    columns = ("flag", "target", ">attempts", ">booked")
    return table("To look at, by flag and target", columns, cells)


def _share(line: PoolLine) -> str:
    """Return the pool's share of its machine; empty for its own hardware."""
    if line.machine is None:
        return "-"
    return f"{line.share_ppm / 10_000:g} % of {line.machine}"


def _usd(pusd: int) -> str:
    """Return dollars with four decimals; smaller amounts keep their digits."""
    tiny = 0 < abs(pusd) < PUSD_PER_USD // 10**PLACES
    return usd_text(pusd) if tiny else format_usd(pusd, PLACES)
