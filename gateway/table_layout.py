"""Cells of the host's shared table: who has which row, and what each row holds.

Every process of one `serve` has the same layout; `gateway.fleet.shared_load` maps the table.
"""

from dataclasses import dataclass
from enum import IntEnum

from router.bid_price import CELLS as MARKET_CELLS

RESIDENTS = 64  # sequences per worker and engine whose growth is followed one by one
HELD_OFF = 16  # models per worker and `provider/*` that the provider holds off


class LoadCell(IntEnum):
    """One worker's share of one engine: what it has in flight there, by its own events."""

    SEQUENCES = 0
    CONTEXT_TOKENS = 1  # prompt and generated tokens of sequences past their first token
    QUEUED_PREFILL_TOKENS = 2  # to read, of prompts dispatched and without a first token
    PROMISED_TOKENS = 3  # block-rounded final size of everything in flight
    PREFILLED_TOKENS_TOTAL = 4  # counter; its slope is the admitted prefill rate
    OBSERVED_STEP_S_TOTAL = 5  # counters; their ratio over a while is the step feedback
    PREDICTED_STEP_S_TOTAL = 6
    TTFT_PULL_TOTAL = 7  # what kept and missed promises say to the safety factors, added up
    TPOT_PULL_TOTAL = 8
    JUDGED_TOTAL = 9  # promises that came due, and of them those not kept
    MISSED_TOTAL = 10
    QUEUED_SEQUENCES = 11
    PREFIX_EXPECTED_TOTAL = 12  # tokens of prompts that were expected in the prefix cache
    QUEUE_MOVED_S = 13  # monotonic: its queue began, or its last prompt left it; no sum, the latest
    TIGHTEST_TPOT_MS = 14  # promised to one of them, 0: none; no sum, the least
    HEARD_S = 15  # monotonic: its last token or answer; like the next two no sum, the latest
    SILENT_S = 16  # when it was last found to say nothing, 0: never
    ASK_AT_S = 17  # from then on one request at a time asks whether it speaks again
    QUEUED_SQUARES = 18  # of the tokens to read of each queued prompt, added up
    # Each change of the first two times its moment, taken off: with the value times a moment it is
    # the sum over time until then.
    SEQUENCE_S_LESS = 19
    CONTEXT_S_LESS = 20
    QUEUED_HIT_TOKENS = 21  # of queued prompts, expected in the prefix cache: held, and not read
    BRIEF_PULL_TOTAL = 22  # as TPOT_PULL_TOTAL, of the missed ones only those of a few tokens


class SequenceCell(IntEnum):
    """One followed sequence: what it holds, what it may come to hold, when that was heard, pace.

    `FINAL_TOKENS` 0: a free place. `HEARD_S` is monotonic, 0 while there is no pace.
    """

    HELD_TOKENS = 0
    FINAL_TOKENS = 1
    HEARD_S = 2
    TOKENS_PER_S = 3


class ApiStatsCell(IntEnum):
    """One worker's experience with one API: exponentially weighted log-latency moments.

    Then two blocks alike, for requests and for tokens: what the provider said last of its limit.
    """

    OBSERVATIONS = 0
    LN_TTFT_MEAN = 1
    LN_TTFT_VAR = 2
    LN_TPOT_MEAN = 3
    LN_TPOT_VAR = 4
    FAILURES_IN_A_ROW = 5
    RETRY_AT_S = 6  # monotonic time until which the target asked for (or earned) silence
    REQUESTS_LEFT = 7  # plus one; a cleared cell, 0, is a provider that does not say
    REQUESTS_SAID_S = 8
    REQUESTS_REFILL_PER_S = 9  # what comes back since it was said
    REQUESTS_UNTIL_S = 10  # from then on it is void
    REQUESTS_OUT = 11  # sent, and the head of the answer has not come
    TOKENS_LEFT = 12
    TOKENS_SAID_S = 13
    TOKENS_REFILL_PER_S = 14
    TOKENS_UNTIL_S = 15
    TOKENS_OUT = 16
    OPENED_S = 17  # when its circuit opened last; 0: never
    ANSWERED_S = 18  # when answers came again after that


class BackoffCell(IntEnum):
    """One model of a `provider/*` that a worker was told to hold off (`model_backoff`)."""

    MODEL = 0  # a number made of its name, 0: a free place
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
    PREFIX_TRUST = 21  # of the tokens expected in the prefix cache, the share found there
    TIGHTEST_TTFT_MS = 22  # of the classes that are asked of its pool, 0: none
    STARTED_S = 23  # its process's start by the epoch, 0: it does not say
    LIFE = 24  # the `Owned.LIFE` that all of this was seen of; another one makes it the past
    ROUND_TRIP_S = 25  # of a new connection, 0: not known
    FORGOTTEN_S = 26  # monotonic: what was sent before is in its prefix cache no more, 0: unknown
    KV_EVENTS_MISSED = 27  # batches that it told and nobody here heard, since telemetry began
    SPARE_MISSES = 28  # first tokens that may be late
    SPARE_BRIEF_MISSES = 29  # times per token of answers of a few tokens that may be too long


class SupervisionCell(IntEnum):
    """Cells of an engine that the parent writes; an engine of somebody else stays 0.

    That a port answers proves nothing: anything may listen there. Only the parent knows whether
    its own process does. `LIFE` numbers the life that serves at this moment, 0 while none does.
    """

    LIFE = 0
    STAGE = 1  # index into STAGES


# Asking an enumeration for its length costs more than reading its row of the board.
LOAD_CELLS, SEQUENCE_CELLS, API_CELLS = len(LoadCell), len(SequenceCell), len(ApiStatsCell)
ENGINE_CELLS, SUPERVISION_CELLS = len(EngineCell), len(SupervisionCell)
BACKOFF_CELLS = HELD_OFF * len(BackoffCell)
PEER_CELLS = 2  # before the loads: when their writer was alive, and of how many hosts they are
HEALTHS = ("unknown", "loading", "healthy", "draining", "down", "off")
STAGES = (
    "waiting", "starting", "loading", "warming", "serving", "draining", "backing_off", "blocked",
    "stopped", "resting",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Which row belongs to whom; equal in every process of one `serve`."""

    workers: int
    engines: tuple[str, ...]
    apis: tuple[str, ...]
    peers: bool = False  # a row for what other hosts say that they have in flight

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of the engines (`pool:NAME/REPLICA`), in the order of their first rows."""
        return tuple(dict.fromkeys(name[5:].rpartition("/")[0] for name in self.engines))

    @property
    def shared(self) -> tuple[str, ...]:
        """The rows of APIs that all models of a provider share that are not named in full."""
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
