"""Money over time: what each bucket of a survey cost, split into lines that add up to its totals.

Closed hours carry their own split. The open rest of a pool's bill is cut at bucket borders by the
contract; in it, what attempts were charged provisionally is used and the remainder is idle.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ledger.bills import PoolBill, live_pusd
from ledger.queries import Contract
from ledger.survey import Survey


class Line(StrEnum):
    USED = "own GPUs, used"
    IDLE = "own GPUs, idle"
    UNAVAILABLE = "own GPUs, unavailable"
    API = "APIs"


@dataclass(frozen=True, slots=True)
class Amount:
    start_us: int
    line: Line
    pusd: int


def spend(survey: Survey) -> list[Amount]:
    """Every line of every bucket, in time order; lines of nothing are left out."""
    amounts: dict[tuple[int, Line], int] = {}
    for start_us, line, pusd in (*_api(survey), *_closed(survey), *_open(survey)):
        if pusd:
            amounts[start_us, line] = amounts.get((start_us, line), 0) + pusd
    return [Amount(start, line, pusd) for (start, line), pusd in sorted(amounts.items())]


def _api(survey: Survey) -> Iterator[tuple[int, Line, int]]:
    for cell in survey.cells:
        if cell.backend == "api":
            yield cell.start_us, Line.API, cell.cost_pusd


def _closed(survey: Survey) -> Iterator[tuple[int, Line, int]]:
    for cell in survey.hours:
        start = cell.start_us
        yield start, Line.USED, cell.used_pusd
        yield start, Line.IDLE, cell.idle_pusd
        yield start, Line.UNAVAILABLE, cell.unavailable_pusd


def _open(survey: Survey) -> Iterator[tuple[int, Line, int]]:
    bills = {bill.pool: bill for bill in survey.standing.bills}
    for contract in survey.contracts:
        yield from _open_of(survey, contract, bills[contract.pool])


def _open_of(survey: Survey, contract: Contract, bill: PoolBill) -> Iterator[tuple[int, Line, int]]:
    starts, bills, charged = [], [], []
    at = bill.open_from_us
    while at < survey.scope.end_us:
        start = at - at % survey.bucket_us
        until = min(start + survey.bucket_us, survey.scope.end_us)
        starts.append(start)
        bills.append(live_pusd(contract, at, until))
        charged.append(
            sum(
                cell.cost_pusd
                for cell in survey.cells
                if cell.pool == bill.pool and cell.start_us == start
            )
        )
        at = until
    closed = sum(cell.used_pusd for cell in survey.hours if cell.pool == bill.pool)
    used = fit(charged, bills, bill.used_pusd - closed)
    for start, share, whole in zip(starts, used, bills, strict=True):
        yield start, Line.USED, share
        yield start, Line.IDLE, whole - share


def fit(wanted: Sequence[int], rooms: Sequence[int], total: int) -> list[int]:
    """Shares of `total` near `wanted`, none above its room; `total` is at most all rooms.

    What does not fit moves on to the next bucket, as work does; what is left at the end fills
    earlier rooms from the back.
    """
    shares = []
    carried = 0
    for want, room in zip(wanted, rooms, strict=True):
        share = min(room, want + carried, total)
        carried += want - share
        total -= share
        shares.append(share)
    for place in reversed(range(len(shares))):
        more = min(rooms[place] - shares[place], total)
        shares[place] += more
        total -= more
    return shares
