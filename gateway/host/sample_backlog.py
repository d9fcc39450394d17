"""Engine samples that wait for the ledger: what could not be stored is stored with the next ones.

A gap that stays is marked as time that nobody observed, which is no down time. Samples of an hour
that may be packed already are given up, for packed hours are what their samples say.
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

    def add(self, samples: Sequence[FleetSample]) -> None:
        """Keep a round; of more than are kept the oldest is given up."""
        if samples:
            self._rounds.append(samples)
        if len(self._rounds) > ROUNDS:
            self._drop_samples(self._rounds.popleft())

    def flush(self, now_us: int) -> bool:
        """Store what waits, oldest first; False if the ledger refused and some of it waits on."""
        while self._rounds:
            samples = self._rounds.popleft()
            if _can_be_packed(samples[0].at_us, now_us):
                self._drop_samples(samples)
                continue
            try:
                self._store(
                    samples if not self._given_up else [*_unobserved_samples(samples), *samples]
                )
            except IntegrityError:
                pass  # stored before, when the answer to it was lost
            except SQLAlchemyError as error:
                self._rounds.appendleft(samples)
                log.warning(
                    "samples of %d engines were not stored, %d rounds wait: %s",
                    len(samples), len(self._rounds), getattr(error, "orig", None) or error,
                )  # fmt: skip
                return False
            self._given_up = 0
        return True

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
    return now_us >= at_us - at_us % HOUR_US + HOUR_US + GRACE_US - MARGIN_US
