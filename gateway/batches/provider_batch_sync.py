"""Takes what was collected to its provider and brings the answers back, one small step at a time.

Before anything reaches the provider the database says that it may have; whoever finds that after a
crash looks there first, by the file's name and by the mark in the batch's metadata. So each file
makes one batch, each batch is read once, and each line is booked once, whoever dies in between.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy.exc import DBAPIError

from gateway.batches.line_learner import LineLearner
from gateway.batches.poll_intervals import PollIntervals
from gateway.batches.provider_batch_client import (
    BatchProviders,
    ProviderBatch,
    ProviderBatchClient,
    ProviderBusy,
    ProviderRefused,
    ProviderUnavailable,
)
from gateway.batches.provider_line_booker import (
    BOOKED,
    LOST_THERE,
    ProviderLineBooker,
    ResultCounter,
)
from gateway.batches.result_file import ResultFile
from gateway.clock import Clock
from ledger.batches.outgoing import OutgoingRecord, OutgoingStore
from ledger.batches.outgoing import ProviderBatchState as State
from ledger.batches.store import IN_PROGRESS, BatchRecord

HELD_US = 600 * 1_000_000  # longer than any one call
AT_ONCE = 4  # of one provider: who is slow or wrong keeps nobody else's from their turn
LATER_US = 900 * 1_000_000
OVERDUE_US = 3 * 86_400 * 1_000_000  # a provider that said nothing for so long says nothing more
FULL = "token_limit_exceeded"  # OpenAI's word for too much of a model being out
REFUSED_THERE = "refused"
ENDED_THERE = frozenset(("completed", "expired", "cancelled"))
_US = 1_000_000

log = logging.getLogger("breakeven.batches")


@dataclass(slots=True)
class ProviderBatchSync:
    """One per runner; `providers` by their names."""

    store: OutgoingStore
    providers: Mapping[str, BatchProviders]
    clock: Clock
    spill_us: int
    waits: PollIntervals = field(default_factory=PollIntervals)
    learner: LineLearner = field(default_factory=LineLearner)
    booker: ProviderLineBooker = field(init=False)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.booker = ProviderLineBooker(self.store, self.clock, self.learner)

    async def step(self, found: Mapping[str, BatchRecord], busy: Collection[str] = ()) -> None:
        """Begin what is due; `found` are the clients' open batches, `busy` still take lines."""
        for record in await asyncio.to_thread(self.store.unfinished):
            if record.id in self._tasks or record.id in busy:
                continue
            running = sum(task.get_name() == record.provider for task in self._tasks.values())
            if record.next_us <= self.clock.wall_us() and running < AT_ONCE:
                work = self._run_batch(record.id, found)
                self._tasks[record.id] = asyncio.create_task(work, name=record.provider)

    async def settle(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await self.settle()
        for provider in self.providers.values():
            await provider.remote.aclose()

    async def _run_batch(self, outgoing_id: str, found: Mapping[str, BatchRecord]) -> None:
        try:
            while await self._step_batch(outgoing_id, found):
                pass
        except DBAPIError as error:
            log.warning("%s waits for the ledger: %s", outgoing_id, error.orig)
            await self._rest(outgoing_id)
        except Exception:  # one defect must not end what the others are at
            log.exception("%s stands still", outgoing_id)
            await self._rest(outgoing_id)
        finally:
            self._tasks.pop(outgoing_id, None)

    async def _rest(self, outgoing_id: str) -> None:
        """Leave a batch alone for a while, or give it up: others have their turn meanwhile."""
        with suppress(DBAPIError):  # the ledger is away: nobody's turn is lost
            record = await asyncio.to_thread(self.store.find, outgoing_id)
            if record is not None and record.state != State.DONE:
                await self._later(record)

    async def _step_batch(self, outgoing_id: str, found: Mapping[str, BatchRecord]) -> bool:
        """One state further; False when there is nothing more to do at once."""
        now_us = self.clock.wall_us()
        taken = await asyncio.to_thread(
            self.store.lease, outgoing_id, now_us=now_us, until_us=now_us + HELD_US
        )
        record = await asyncio.to_thread(self.store.find, outgoing_id) if taken else None
        if record is None or record.state == State.DONE:
            return False
        over = self._is_over(record, found)
        remote = self._remote(record)
        if remote is None and record.state not in (State.COLLECTING, State.READY, State.RETURNING):
            return await self._later(record)  # it is configured no more: somebody may mend that
        try:
            return await self._step(record, remote, over=over)
        except ProviderBusy as busy:
            back = _BEFORE.get(State(record.state))
            return await self._later(record, busy, **({} if back is None else {"state": back}))
        except ProviderUnavailable as away:
            return await self._later(record, away)
        except ProviderRefused as refused:
            return await self._handle_refusal(record, refused)

    async def _step(
        self, record: OutgoingRecord, remote: ProviderBatchClient | None, *, over: bool
    ) -> bool:
        state = State(record.state)
        if state is State.COLLECTING:  # whoever collected is dead
            after = State.READY if record.lines else State.DONE
            return await self._move(record, state=after)
        if state is State.RETURNING or remote is None or (over and state in _NOT_SENT):
            return await self._return_batch(record)
        steps: dict[State, Callable[[OutgoingRecord, ProviderBatchClient], Awaitable[bool]]] = {
            State.READY: self._upload,
            State.UPLOADING: self._find_file,
            State.UPLOADED: self._create,
            State.CREATING: self._find_batch,
            State.BOOKING: self._book,
        }
        if state is State.SENT:
            return await self._poll_batch(record, remote, over=over)
        return await steps[state](record, remote)

    # -- to the provider ----------------------------------------------------------------------

    async def _upload(self, record: OutgoingRecord, remote: ProviderBatchClient) -> bool:
        text = await asyncio.to_thread(self._text, record.id)
        now_us = self.clock.wall_us()
        if not await self._move(record, state=State.UPLOADING, marked_us=now_us):
            return False
        file_id = await remote.upload(_name(record), text)
        return await self._move(record, State.UPLOADING, **_uploaded_values(file_id))

    async def _find_file(self, record: OutgoingRecord, remote: ProviderBatchClient) -> bool:
        """A file that was not found is sent again; one that came too late is never read."""
        file_id = await remote.find_file(_name(record), _since_s(record))
        if file_id is None:
            return await self._move(record, state=State.READY)
        return await self._move(record, **_uploaded_values(file_id))

    async def _create(self, record: OutgoingRecord, remote: ProviderBatchClient) -> bool:
        assert record.input_file_id is not None
        now_us = self.clock.wall_us()
        if not await self._move(record, state=State.CREATING, marked_us=now_us):
            return False
        made = await remote.create(record.input_file_id, record.endpoint, record.id)
        return await self._mark_sent(record, made, remote)

    async def _find_batch(self, record: OutgoingRecord, remote: ProviderBatchClient) -> bool:
        """The batch that may have been made; made again only when it surely was not."""
        made = await remote.find_batch(record.id, _since_s(record))
        if made is not None:
            return await self._mark_sent(record, made, remote)
        passed_us = self.clock.wall_us() - (record.marked_us or 0)
        if passed_us < self.waits.settled * _US:
            return await self._later(record)
        return await self._move(record, state=State.UPLOADED, tries=0)

    async def _mark_sent(
        self, record: OutgoingRecord, made: ProviderBatch, remote: ProviderBatchClient
    ) -> bool:
        next_us = self.clock.wall_us() + self.waits.delay_us(0)
        values = {"state": State.SENT, "remote_id": made.id, "next_us": next_us, "tries": 0}
        if await self._move(record, State.CREATING, **values):
            return False
        known = await asyncio.to_thread(self.store.find, record.id)
        if known is not None and known.remote_id not in (None, made.id):
            await remote.cancel(made.id)  # another runner made one while this one stood still
        return False

    # -- and back -----------------------------------------------------------------------------

    async def _poll_batch(
        self, record: OutgoingRecord, remote: ProviderBatchClient, *, over: bool
    ) -> bool:
        assert record.remote_id is not None
        if over and record.cancel_us is None:
            await self._cancel(record, remote)
        there = await remote.batch(record.remote_id)
        why = there.status
        if why == "failed":
            why = FULL if FULL in there.codes else REFUSED_THERE
            if not (there.completed or there.output_file_id or there.error_file_id):
                return await self._move(record, state=State.RETURNING, why=why)
        elif why not in ENDED_THERE:
            return await self._later(record)
        return await self._move(
            record, state=State.BOOKING, why=why, tries=0,
            output_file_id=there.output_file_id, error_file_id=there.error_file_id,
        )  # fmt: skip

    async def _cancel(self, record: OutgoingRecord, remote: ProviderBatchClient) -> None:
        """Told until it is heard: what is done there by then comes back, and is booked."""
        assert record.remote_id is not None
        try:
            await remote.cancel(record.remote_id)
        except (
            ProviderRefused,
            ProviderUnavailable,
            ProviderBusy,
        ) as error:  # it may have ended by itself: that is looked at
            log.info("%s was not cancelled: %s", record.id, error)
            return
        await self._move(record, cancel_us=self.clock.wall_us(), tries=0)

    async def _book(self, record: OutgoingRecord, remote: ProviderBatchClient) -> bool:
        found, failed = ResultFile(), ResultFile()
        failed.known = found.known  # a line has one result, whichever file it stands in
        told = [(record.output_file_id, found), (record.error_file_id, failed)]
        files = [(file_id, counts) for file_id, counts in told if file_id is not None]
        for file_id, counts in files:
            await self._book_file(record, remote, file_id, counts.add_answer)
        for file_id, counts in files:
            if counts.has_failures:
                await self._book_file(record, remote, file_id, counts.add_failure)
        if left := await asyncio.to_thread(self.booker.count_lines, record):
            completed = (await remote.batch(record.remote_id or "")).completed
            # What nobody can read in the error file costs nothing: it failed.
            unseen = max(found.odd, completed - found.done - failed.done)
            # An earlier look that was cut off may have booked some of these.
            unseen -= record.lines - left - len(found.known)
            await asyncio.to_thread(self.booker.book_unseen, record, min(unseen, left))
        kept = record.why in ("completed", REFUSED_THERE)  # it will not do these
        await asyncio.to_thread(self.booker.return_lines, record, kept=kept, next_us=0)
        await self._move(record, state=State.DONE)
        await self._delete_files(record, remote)
        return False

    async def _book_file(
        self,
        record: OutgoingRecord,
        remote: ProviderBatchClient,
        file_id: str,
        add: ResultCounter,
    ) -> None:
        secrets = self.providers[record.provider].secrets
        texts: list[bytes] = []
        async for text in remote.lines(file_id):
            texts.append(text)
            if len(texts) >= BOOKED:
                await asyncio.to_thread(self.booker.book_results, record, texts, secrets, add)
                texts = []
        await asyncio.to_thread(self.booker.book_results, record, texts, secrets, add)

    async def _return_batch(self, record: OutgoingRecord) -> bool:
        """Nothing was done there: the lines wait again."""
        if record.state == State.CREATING:  # it may have been made, and must not run on unseen
            remote = self._remote(record)
            made = None if remote is None else await remote.find_batch(record.id, _since_s(record))
            if remote is not None and made is not None:
                return await self._mark_sent(record, made, remote) or True
            if self.clock.wall_us() - (record.marked_us or 0) < self.waits.settled * _US:
                return await self._later(record)
        next_us = self.clock.wall_us() + LATER_US if record.why == FULL else 0
        kept = record.why == REFUSED_THERE
        await asyncio.to_thread(self.booker.return_lines, record, kept=kept, next_us=next_us)
        await self._move(record, state=State.DONE)
        await self._delete_files(record, self._remote(record))
        return False

    async def _delete_files(
        self, record: OutgoingRecord, remote: ProviderBatchClient | None
    ) -> None:
        """Its files there are nobody's any more; where they stay, the provider's own time ends."""
        for file_id in (record.input_file_id, record.output_file_id, record.error_file_id):
            if file_id is not None and remote is not None:
                try:
                    await remote.delete(file_id)
                except (ProviderUnavailable, ProviderBusy, ProviderRefused):
                    log.info("%s: a file stays at %s", record.id, record.provider)

    # -- in a thread --------------------------------------------------------------------------

    def _text(self, outgoing_id: str) -> bytes:
        """The file, a request a line."""
        record = self.store.find(outgoing_id)
        assert record is not None
        return b"".join(
            msgspec.json.encode(
                {
                    "custom_id": line.attempt_id, "method": "POST", "url": record.endpoint,
                    "body": msgspec.Raw(msgspec.json.format(line.body, indent=-1)),
                }
            )
            + b"\n"
            for line in self.store.lines(outgoing_id)
        )  # fmt: skip

    # -- states -------------------------------------------------------------------------------

    async def _move(
        self, record: OutgoingRecord, since: State | None = None, **values: Any
    ) -> bool:
        since = State(record.state) if since is None else since
        return await asyncio.to_thread(self.store.move, record.id, since, **values)

    async def _later(
        self, record: OutgoingRecord, why: Exception | None = None, **values: Any
    ) -> bool:
        """Look at it again after a while that grows; True where it was waited for for days."""
        if why is not None:
            log.warning("%s at %s: %s", record.id, record.provider, why)
        if record.state in _THERE and self._is_overdue(record):
            return await self._move(record, state=State.RETURNING, why=LOST_THERE)
        next_us = self.clock.wall_us() + self.waits.delay_us(record.tries)
        now = await asyncio.to_thread(self.store.find, record.id)
        if now is not None:
            await self._move(now, next_us=next_us, tries=record.tries + 1, **values)
        return False

    async def _handle_refusal(self, record: OutgoingRecord, refused: ProviderRefused) -> bool:
        """A refused file or batch is none; what is not there any more is waited for some days."""
        now = await asyncio.to_thread(self.store.find, record.id)
        assert now is not None
        log.warning("%s at %s: %s", record.id, record.provider, refused)
        if record.state in _BEFORE:
            return await self._move(now, state=State.RETURNING, why=REFUSED_THERE)
        return await self._later(now)

    def _is_overdue(self, record: OutgoingRecord) -> bool:
        return self.clock.wall_us() - record.created_us > OVERDUE_US

    def _remote(self, record: OutgoingRecord) -> ProviderBatchClient | None:
        """`None`: the provider is configured no more."""
        known = self.providers.get(record.provider)
        return None if known is None else known.remote

    def _is_over(self, record: OutgoingRecord, found: Mapping[str, BatchRecord]) -> bool:
        """Whether what the provider has not done by now must come back."""
        batch = found.get(record.batch_id)
        if batch is None or batch.status != IN_PROGRESS:
            return True
        return self.clock.wall_us() >= batch.expires_us - self.spill_us // 2


_THERE = (State.CREATING, State.SENT, State.BOOKING)
_NOT_SENT = (State.READY, State.UPLOADING, State.UPLOADED, State.CREATING)
# What a step falls back to where surely nothing was done.
_BEFORE = {State.READY: State.READY, State.UPLOADED: State.UPLOADED}


def _uploaded_values(file_id: str) -> dict[str, Any]:
    return {"state": State.UPLOADED, "input_file_id": file_id, "tries": 0}


def _name(record: OutgoingRecord) -> str:
    return f"{record.id}.jsonl"


def _since_s(record: OutgoingRecord) -> int:
    """Their clock may be another by some minutes."""
    return record.created_us // _US - 3600
