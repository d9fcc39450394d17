"""Backlog of engine samples for the ledger; failed samples are stored with the next ones.

A remaining gap is marked as unobserved time, which is not down time. Samples of an hour that may be
packed already are dropped, because packed hours summarize their samples. Idle rounds are stored
together, because each store wakes all followers of the ledger's commits.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ledger.fleet.samples import FleetSample
from ledger.orm.fleet import HOUR_US
from ledger.sums.samplehours import GRACE_US

MARGIN_US = 60_000_000  # before an hour may be packed by anybody
STEP_US = 10_000_000  # between two rounds
AT_ONCE = 12  # rounds in one transaction
IDLE_US = 25_000_000  # maximum wait of rounds without a change
ROUNDS = 480  # of samples ten seconds apart: more than an hour plus its grace period

log = logging.getLogger("breakeven.telemetry")
Store = Callable[[Sequence[FleetSample]], None]


class SampleBacklog:
    """Rounds of samples in order. `store` stores samples in one transaction.

    Call `add` on the event loop and `flush` in one thread at a time: a ledger that hangs does not
    delay sampling.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rounds: deque[Sequence[FleetSample]] = deque()
        self._given_up = 0
        self._last: dict[str, FleetSample] = {}  # by engine
        self._has_news = False
        self._alone = 0  # of the oldest rounds, that are stored one by one

    def add(self, samples: Sequence[FleetSample]) -> None:
        """Add a round; beyond `ROUNDS` the oldest round is dropped."""
        if samples:
            self._rounds.append(samples)
        self._has_news |= any(not _is_idle(each, self._last.get(each.engine)) for each in samples)
        self._last |= {sample.engine: sample for sample in samples}
        if len(self._rounds) > ROUNDS:
            self._drop_samples(self._rounds.popleft())

    def is_due(self, now_us: int) -> bool:
        """Return whether a waiting sample is new information, or has waited for `IDLE_US`."""
        if not self._rounds:
            return False
        return self._has_news or now_us - self._rounds[0][0].at_us >= IDLE_US

    def flush(self, now_us: int) -> bool:
        """Store waiting samples, oldest first. Return false if the ledger failed."""
        self._has_news = False
        while self._rounds:
            group = self._next_rounds(now_us)
            if not group:
                self._drop_samples(self._rounds.popleft())
                continue
            samples = [sample for each_round in group for sample in each_round]
            try:
                self._store(
                    samples if not self._given_up else [*_unobserved_samples(samples), *samples]
                )
            except IntegrityError:
                if len(group) > 1:  # one was stored before, but the answer was lost
                    self._alone = len(group)
                    self._rounds.extendleft(reversed(group))
            except SQLAlchemyError as error:
                self._rounds.extendleft(reversed(group))
                self._has_news = True
                log.warning(
                    "engine samples were not stored engines=%d waiting_rounds=%d error=%s",
                    len(group[0]), len(self._rounds), getattr(error, "orig", None) or error,
                )  # fmt: skip
                return False
            else:
                self._given_up = 0
        return True

    def _next_rounds(self, now_us: int) -> list[Sequence[FleetSample]]:
        """Return the oldest round and those stored with it; empty if it is to be dropped."""
        oldest = self._rounds[0][0].at_us
        if _can_be_packed(oldest, now_us):
            return []
        group = [self._rounds.popleft()]
        if self._alone or self._given_up:
            self._alone = max(0, self._alone - 1)
            return group
        while (
            self._rounds
            and len(group) < AT_ONCE
            and _hour_us(self._rounds[0][0].at_us) == _hour_us(oldest)
        ):
            group.append(self._rounds.popleft())
        return group

    def _drop_samples(self, samples: Sequence[FleetSample]) -> None:
        if not self._given_up:
            log.warning("engine samples are discarded: the ledger was unreachable for too long")
        self._given_up += len(samples)


def unobserved_sample(pool: str, engine: str, at_us: int, *, simulated: bool) -> FleetSample:
    """Return a sample that marks the time until then as unobserved, not as down time.

    Without it the next sample would cover all the time since the last one before the gap.
    """
    return FleetSample(at_us, pool, engine, "unknown", simulated=simulated)


def _unobserved_samples(samples: Sequence[FleetSample]) -> list[FleetSample]:
    return [
        unobserved_sample(
            sample.pool, sample.engine, sample.at_us - STEP_US, simulated=sample.simulated
        )
        for sample in samples
    ]


def _can_be_packed(at_us: int, now_us: int) -> bool:
    return now_us >= _hour_us(at_us) + HOUR_US + GRACE_US - MARGIN_US


def _hour_us(at_us: int) -> int:
    return at_us - at_us % HOUR_US


def _is_idle(sample: FleetSample, before: FleetSample | None) -> bool:
    """Return whether an engine is idle and was idle since its last sample."""
    if before is None or sample.running or sample.waiting or sample.busy_us:
        return False
    return _totals(sample) == _totals(before)


def _totals(sample: FleetSample) -> tuple[object, ...]:
    told = sample.prompt_tokens_total, sample.output_tokens_total, sample.preemptions_total
    return sample.health, *told
