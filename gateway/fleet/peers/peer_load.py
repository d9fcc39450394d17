"""In-flight load of one host on one engine, as sent to other hosts.

It contains only sums. Counters of `LoadCell` that feed control loops are left out, because each
host corrects itself by its own observations. Times are left out, because monotonic clocks differ
between machines: the age of the queue's head is sent, and the receiver converts it to its clock.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gateway.table_layout import LoadCell

LONGEST_AGO_S = 1e6


class PeerEngineLoad(NamedTuple):
    """Load of one host on one engine, in the units of `LoadCell`.

    `tightest_tpot_ms` is 0 if no TPOT is promised.
    """

    sequences: float = 0.0
    context_tokens: float = 0.0
    queued_prefill_tokens: float = 0.0
    promised_tokens: float = 0.0
    queued_sequences: float = 0.0
    tightest_tpot_ms: float = 0.0
    queue_moved_ago_s: float = 0.0  # only if the queue is not empty


MOST = PeerEngineLoad(1e6, 1e12, 1e12, 1e12, 1e6, 1e7, LONGEST_AGO_S)
NOTHING = PeerEngineLoad()
CELLS = (
    LoadCell.SEQUENCES,
    LoadCell.CONTEXT_TOKENS,
    LoadCell.QUEUED_PREFILL_TOKENS,
    LoadCell.PROMISED_TOKENS,
    LoadCell.QUEUED_SEQUENCES,
    LoadCell.TIGHTEST_TPOT_MS,
)


def is_sound(share: PeerEngineLoad) -> bool:
    """Return whether all values are numbers from 0 to the maximum that a host can have."""
    return all(0.0 <= value <= most for value, most in zip(share, MOST, strict=True))


def share_of(loads: Sequence[float], now_s: float) -> PeerEngineLoad:
    """Return the load in this host's cells, clamped to valid bounds because float sums drift."""
    queued, moved_s = loads[LoadCell.QUEUED_SEQUENCES], loads[LoadCell.QUEUE_MOVED_S]
    ago_s = now_s - moved_s if queued > 0.0 and moved_s else 0.0
    told = (*(loads[cell] for cell in CELLS), ago_s)
    return PeerEngineLoad(
        *(min(max(0.0, value), most) for value, most in zip(told, MOST, strict=True))
    )


def sum_loads(shares: Iterable[PeerEngineLoad]) -> PeerEngineLoad:
    """Return the total of all hosts, with the tightest TPOT and the youngest queue."""
    found = list(shares)
    if not found:
        return NOTHING
    columns = list(zip(*found, strict=True))
    tightest = min((value for value in columns[5] if value > 0.0), default=0.0)
    queues = [share.queue_moved_ago_s for share in found if share.queued_sequences > 0.0]
    summed = [sum(column) for column in columns[:5]]
    return PeerEngineLoad._make([*summed, tightest, min(queues, default=0.0)])
