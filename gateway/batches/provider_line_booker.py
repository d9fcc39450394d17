"""Booking of the lines of a provider's batch from its result files.

Each call is one or several transactions and blocks on the database.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from backends.secret import Secret
from gateway.batches.line_learner import LineLearner
from gateway.batches.line_settlement import LineResult, LineSettlement, result_of
from gateway.clock import Clock
from ledger.batches.outgoing import LineEnd, OutgoingRecord, OutgoingStore, OutLine
from ledger.prices.stored import prices_of

BOOKED = 50  # lines per transaction
NUMBER_DIGITS = 12  # maximum digits of a line number
LOST_THERE = "lost"

# Counts a result; returns it if it is to be booked. The second argument: known attempts.
ResultCounter = Callable[[LineResult | None, Container[str]], LineResult | None]


@dataclass(frozen=True, slots=True)
class ProviderLineBooker:
    """Booker of one runner."""

    store: OutgoingStore
    clock: Clock
    learner: LineLearner = field(default_factory=LineLearner)

    def book_results(
        self,
        record: OutgoingRecord,
        texts: list[bytes],
        secrets: tuple[Secret, ...],
        add: ResultCounter,
    ) -> None:
        """Book the results that `add` returns."""
        pairs = []
        results = [result_of(text) for text in texts]
        ours = self.store.find_openings([result.custom_id for result in results if result])
        for result in [first for told in results if (first := add(told, ours))]:
            line = self.store.line(record.id, _number(result.custom_id))
            if line is not None and line.attempt_id == result.custom_id:
                pairs.append((line, result))
        booking, openings = self._settlement_of(record, [line for line, _ in pairs], secrets)
        ended = [
            booking.settle_result(line, openings[line.attempt_id], result)
            for line, result in pairs
            if line.attempt_id in openings
        ]
        self._store_ends(record, ended)

    def count_lines(self, record: OutgoingRecord) -> int:
        """Return the number of lines that are not settled."""
        return self.store.count_lines(record.id)

    def book_unseen(self, record: OutgoingRecord, count: int) -> None:
        """Book `count` lines that were processed but have no result, at their bounds."""
        for line in list(islice(self.store.lines(record.id), max(0, count))):
            booking, openings = self._settlement_of(record, [line], ())
            self._store_ends(record, [booking.settle_unseen(line, openings[line.attempt_id])])

    def return_lines(self, record: OutgoingRecord, *, kept: bool, next_us: int) -> None:
        some: list[OutLine] = []
        for line in self.store.lines(record.id):
            some.append(line)
            if len(some) >= BOOKED:
                self._return(record, some, kept=kept, next_us=next_us)
                some = []
        self._return(record, some, kept=kept, next_us=next_us)

    def _return(
        self, record: OutgoingRecord, lines: list[OutLine], *, kept: bool, next_us: int
    ) -> None:
        booking, openings = self._settlement_of(record, lines, ())
        self._store_ends(
            record,
            [
                booking.settle_lost(line, openings[line.attempt_id])
                if record.why == LOST_THERE
                else booking.settle_returned(
                    line, openings[line.attempt_id], kept=kept, next_us=next_us
                )
                for line in lines
            ],
        )

    def _settlement_of(
        self, record: OutgoingRecord, lines: list[OutLine], secrets: tuple[Secret, ...]
    ) -> tuple[LineSettlement, Mapping[str, Any]]:
        openings = self.store.find_openings([line.attempt_id for line in lines])
        versions = {opening.price_version or 0 for opening in openings.values()}
        compared = {version for line in lines for version in line.terms.compared}
        prices = prices_of(self.store.engine, versions | compared)
        learn, now = self.learner.learn_of(record.target), self.clock.wall_us()
        return LineSettlement(record.batch_id, prices, now, secrets, learn), openings

    def _store_ends(self, record: OutgoingRecord, ended: list[LineEnd]) -> None:
        if ended:
            self.store.settle_lines(record, ended, at_us=self.clock.wall_us())


def _number(custom_id: str) -> int:
    """Return the line's number in the client's file from an attempt id."""
    parts = custom_id.rsplit("-", 2)
    is_number = len(parts) == 3 and parts[1].isdecimal() and len(parts[1]) <= NUMBER_DIGITS
    return int(parts[1]) if is_number else -1
