"""Layout of the shared load table of a host: rows by owner, and the cells of each row.

All processes of one `serve` use the same layout. `gateway.fleet.shared_load` maps the table.
"""

from dataclasses import dataclass
from enum import IntEnum

from router.bid_price import CELLS as MARKET_CELLS

RESIDENTS = 64  # sequences per worker and engine whose growth is followed one by one
HELD_OFF = 16  # models per worker and `provider/*` that the provider holds off


class LoadCell(IntEnum):
    """Cells of one worker's in-flight load on one engine, from the worker's own events."""

    SEQUENCES = 0
    CONTEXT_TOKENS = 1  # prompt and generated tokens of sequences past their first token
    QUEUED_PREFILL_TOKENS = 2  # prompt tokens of requests that wait for their first token
    PROMISED_TOKENS = 3  # block-rounded final size of everything in flight
    PREFILLED_TOKENS_TOTAL = 4  # counter; its slope is the admitted prefill rate
    OBSERVED_STEP_S_TOTAL = 5  # counters; the ratio of their slopes is the step feedback
    PREDICTED_STEP_S_TOTAL = 6
    TTFT_PULL_TOTAL = 7  # summed corrections of the safety factors from kept and missed promises
    TPOT_PULL_TOTAL = 8
    JUDGED_TOTAL = 9  # promises that came due, and how many of them were missed
    MISSED_TOTAL = 10
    QUEUED_SEQUENCES = 11
    PREFIX_EXPECTED_TOTAL = 12  # tokens of prompts that were expected in the prefix cache
    QUEUE_MOVED_S = 13  # monotonic: last change of the queue's head; the latest counts
    TIGHTEST_TPOT_MS = 14  # smallest TPOT promised, 0: none; the minimum counts
    HEARD_S = 15  # monotonic: last token or answer; the latest counts, as for the next two
    SILENT_S = 16  # when it was last found silent, 0: never
    ASK_AT_S = 17  # from then on one request at a time probes it
    QUEUED_SQUARES = 18  # sum of squares of the queued prompts' unread tokens
    # Minus the sum of (change x time) of the first two cells. Added to value x time, this gives
    # their integral up to that time.
    SEQUENCE_S_LESS = 19
    CONTEXT_S_LESS = 20
    QUEUED_HIT_TOKENS = 21  # queued prompt tokens expected in the prefix cache: held, not read
    BRIEF_PULL_TOTAL = 22  # as TPOT_PULL_TOTAL, with only the missed promises of short answers


class SequenceCell(IntEnum):
    """Cells of one followed sequence: tokens held, maximum tokens, last event, tokens/s.

    `FINAL_TOKENS` 0 marks a free cell group. `HEARD_S` is monotonic, 0 while the pace is unknown.
    """

    HELD_TOKENS = 0
    FINAL_TOKENS = 1
    HEARD_S = 2
    TOKENS_PER_S = 3


class ApiStatsCell(IntEnum):
    """Cells of one worker's statistics of one API.

    They hold exponentially weighted moments of log-latency, then two equal blocks (requests,
    tokens) with the rate limit that the provider reported last.
    """

    OBSERVATIONS = 0
    LN_TTFT_MEAN = 1
    LN_TTFT_VAR = 2
    LN_TPOT_MEAN = 3
    LN_TPOT_VAR = 4
    FAILURES_IN_A_ROW = 5
    RETRY_AT_S = 6  # monotonic: no requests until then (`Retry-After` or open circuit)
    REQUESTS_LEFT = 7  # plus one; 0: the provider does not report it
    REQUESTS_SAID_S = 8
    REQUESTS_REFILL_PER_S = 9  # refill rate since the report
    REQUESTS_UNTIL_S = 10  # from then on the report is void
    REQUESTS_OUT = 11  # requests that wait for the head of the answer
    TOKENS_LEFT = 12
    TOKENS_SAID_S = 13
    TOKENS_REFILL_PER_S = 14
    TOKENS_UNTIL_S = 15
    TOKENS_OUT = 16
    OPENED_S = 17  # when its circuit last opened; 0: never
    ANSWERED_S = 18  # when the first answer after that came


class BackoffCell(IntEnum):
    """Cells of one model of a `provider/*` that one worker pauses (`model_backoff`)."""

    MODEL = 0  # hash of its name, 0: a free cell group
    UNTIL_S = 1  # monotonic
    REFUSALS = 2  # in a row


class EngineCell(IntEnum):
    """Cells of one engine that telemetry writes; `UPDATED_S` is monotonic, 0 before the first."""

    UPDATED_S = 0
    HEALTH = 1  # index into HEALTHS
    KV_CAPACITY_TOKENS = 2
    KV_BLOCK_TOKENS = 3
    FOREIGN_SEQUENCES = 4
    FOREIGN_KV_TOKENS = 5
    A_S = 6
    B_S = 7
    C_S = 8
    D_S = 9
    T0_S = 10
    STEP_FEEDBACK = 11
    SAFETY_TTFT = 12
    SAFETY_TPOT = 13
    PREFILL_RATE = 14
    MAX_NUM_SEQS = 15
    PREFILL_BUDGET_TOKENS = 16
    CONTEXT_TOKENS = 17
    BID_PRICE_PUSD_PER_S = 18
    TOP_DENSITY_PUSD_PER_S = 19
    DENSITY_SPREAD = 20
    PREFIX_TRUST = 21  # share of the tokens expected in the prefix cache that were found
    TIGHTEST_TTFT_MS = 22  # smallest TTFT promised in its pool, 0: none
    STARTED_S = 23  # start of its process since the epoch, 0: not reported
    LIFE = 24  # the `SupervisionCell.LIFE` of these values; another life makes them stale
    ROUND_TRIP_S = 25  # of a new connection, 0: unknown
    FORGOTTEN_S = 26  # monotonic: prompts sent before have left its prefix cache, 0: unknown
    KV_EVENTS_MISSED = 27  # event batches that were lost since telemetry started
    SPARE_MISSES = 28  # number of first tokens that may be late
    SPARE_BRIEF_MISSES = 29  # number of short answers whose time per token may be too long


class SupervisionCell(IntEnum):
    """Cells of an engine that the parent writes; 0 for an engine that it does not run.

    An answering port proves nothing, because another process may listen there. Only the parent
    knows whether its own process does. `LIFE` numbers the process that serves now, 0 while none
    does.
    """

    LIFE = 0
    STAGE = 1  # index into STAGES


# `len()` of an enumeration costs more than reading a row of the table.
LOAD_CELLS, SEQUENCE_CELLS, API_CELLS = len(LoadCell), len(SequenceCell), len(ApiStatsCell)
ENGINE_CELLS, SUPERVISION_CELLS = len(EngineCell), len(SupervisionCell)
BACKOFF_CELLS = HELD_OFF * len(BackoffCell)
PEER_CELLS = 2  # before the loads: time of the last write, and number of hosts
HEALTHS = ("unknown", "loading", "healthy", "draining", "down", "off")
STAGES = (
    "waiting", "starting", "loading", "warming", "serving", "draining", "backing_off", "blocked",
    "stopped", "resting",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Assignment of table rows to workers, engines and APIs.

    The layout is equal in all processes of one `serve`.
    """

    workers: int
    engines: tuple[str, ...]
    apis: tuple[str, ...]
    peers: bool = False  # whether a row holds the in-flight load of other hosts

    @property
    def pools(self) -> tuple[str, ...]:
        """Return the pools of the engines (`pool:NAME/REPLICA`), in the order of their rows."""
        return tuple(dict.fromkeys(name[5:].rpartition("/")[0] for name in self.engines))

    @property
    def shared(self) -> tuple[str, ...]:
        """Return the API rows (`provider/*`) shared by all models that no configuration names."""
        return tuple(name for name in self.apis if name.endswith("/*"))

    @property
    def worker_cells(self) -> int:
        per_engine = LOAD_CELLS + RESIDENTS * SEQUENCE_CELLS
        apis = len(self.apis) * API_CELLS + len(self.shared) * BACKOFF_CELLS
        return 2 + len(self.engines) * per_engine + apis + len(self.pools) * MARKET_CELLS

    @property
    def cells(self) -> int:
        per_engine = ENGINE_CELLS + SUPERVISION_CELLS
        cells = 2 + self.workers * self.worker_cells + len(self.engines) * per_engine
        return cells + self.peers_cells

    @property
    def peers_cells(self) -> int:
        return PEER_CELLS + len(self.engines) * LOAD_CELLS if self.peers else 0
