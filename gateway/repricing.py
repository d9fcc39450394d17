"""A running worker follows the price book: new versions count for requests that begin after them.

The ledger writer publishes the newest version's number in shared memory; a worker that knows fewer
reads what is new and puts a whole new book in the old one's place between two requests. What is
under way keeps the price it was decided with. With the database away the known prices stay.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from gateway.candidates import Candidates
from ledger.book import NEWEST_PRICE_FILE
from ledger.keyring import Generation
from ledger.prices import Price, PriceBook, PriceError

LOOK_S = 0.5  # a glance at shared memory
RELOAD_S = 2.0  # from an import's commit to a worker's use of it, the writer's look included
_log = logging.getLogger(__name__)

ReadNewer = Callable[[int], Sequence[Price]]


async def follow_prices(
    run_dir: Path, book: PriceBook, newer: ReadNewer | None, candidates: Candidates
) -> None:
    """Keep a worker's candidates at the newest prices; without `newer` those of the start stay."""
    if newer is None:
        return
    newest = Generation(run_dir, NEWEST_PRICE_FILE)
    try:
        await Repricing(book, newest, newer, candidates).run()
    finally:
        newest.close()


class Repricing:
    """One per worker. `newer` reads the versions above a number; it may block."""

    def __init__(
        self, book: PriceBook, newest: Generation, newer: ReadNewer, candidates: Candidates
    ) -> None:
        self._book = book
        self._known = book.newest
        self._newest = newest
        self._newer = newer
        self._candidates = candidates

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self._newest.read() > self._known:
                await self.follow()

    async def follow(self) -> bool:
        """Take over what is new; False when it cannot be read, or not be used, for now."""
        try:
            book = await asyncio.to_thread(self._read)
        except DBAPIError:
            return False  # the next look tries again
        except PriceError as error:
            _log.warning("new prices cannot be used, the known ones stay: %s", error)
            self._known = self._newest.read()
            return False
        if book is None:
            return False
        self._candidates.reprice(book)
        self._book, self._known = book, book.newest
        return True

    def _read(self) -> PriceBook | None:
        prices = self._newer(self._book.newest)
        return self._book.extended(prices) if prices else None
