"""Engine samples that wait for the ledger: what could not be stored is stored with the next ones.

A gap that stays is marked as time that nobody observed, which is no down time. Samples of an hour
that may be packed already are given up, for packed hours are what their samples say. Rounds in
which nothing happens are stored together: each store wakes whoever follows the ledger's commits.
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
IDLE_US = 25_000_000  # so long rounds wait in which every engine is as it was
ROUNDS = 480  # of samples ten seconds apart: more than an hour and its grace hold

log = logging.getLogger("breakeven.telemetry")
Store = Callable[[Sequence[FleetSample]], None]


class SampleBacklog:
    """Rounds of samples in the order in which they were taken. `store` is one transaction.

    `add` belongs to the event loop and `flush` to one thread at a time: a ledger that hangs holds
    up no sampling.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rounds: deque[Sequence[FleetSample]] = deque()
        self._given_up = 0
        self._last: dict[str, FleetSample] = {}  # by engine
        self._has_news = False
        self._alone = 0  # of the oldest rounds, that are stored one by one

    def add(self, samples: Sequence[FleetSample]) -> None:
        """Keep a round; of more than are kept the oldest is given up."""
        if samples:
            self._rounds.append(samples)
        self._has_news |= any(not _is_idle(each, self._last.get(each.engine)) for each in samples)
        self._last |= {sample.engine: sample for sample in samples}
        if len(self._rounds) > ROUNDS:
            self._drop_samples(self._rounds.popleft())

    def is_due(self, now_us: int) -> bool:
        """Return whether something waits that is news, or has waited for `IDLE_US`."""
        if not self._rounds:
            return False
        return self._has_news or now_us - self._rounds[0][0].at_us >= IDLE_US

    def flush(self, now_us: int) -> bool:
        """Store what waits, oldest first; False if the ledger refused and some of it waits on."""
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
                if len(group) > 1:  # one of them was stored before, when the answer was lost
                    self._alone = len(group)
                    self._rounds.extendleft(reversed(group))
            except SQLAlchemyError as error:
                self._rounds.extendleft(reversed(group))
                self._has_news = True
                log.warning(
                    "samples of %d engines were not stored, %d rounds wait: %s",
                    len(group[0]), len(self._rounds), getattr(error, "orig", None) or error,
                )  # fmt: skip
                return False
            else:
                self._given_up = 0
        return True

    def _next_rounds(self, now_us: int) -> list[Sequence[FleetSample]]:
        """Take the oldest round, and those that go with it; none if it is to be given up."""
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
            log.warning("samples are given up: the ledger was away for too long")
        self._given_up += len(samples)


def unobserved_sample(pool: str, engine: str, at_us: int, *, simulated: bool) -> FleetSample:
    """A sample that says that until then nobody looked at the engine: its time is not down time.

    Without it the next sample would stand for all the time since the one before the gap.
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
    """Return whether an engine has nothing to do and had nothing since its last sample."""
    if before is None or sample.running or sample.waiting or sample.busy_us:
        return False
    return _totals(sample) == _totals(before)


def _totals(sample: FleetSample) -> tuple[object, ...]:
    told = sample.prompt_tokens_total, sample.output_tokens_total, sample.preemptions_total
    return sample.health, *told
