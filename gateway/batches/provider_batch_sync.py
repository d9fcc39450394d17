"""State machine of providers' batches: uploads them and fetches results step by step.

The database records each call before it reaches the provider. After a crash, the next runner checks
at the provider, by the file's name and the mark in the batch's metadata. So each file makes one
batch, each batch is read once, and each line is booked once.
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

HELD_US = 600 * 1_000_000  # longer than any single call
AT_ONCE = 4  # per provider, so that a slow one does not delay others
LATER_US = 900 * 1_000_000
OVERDUE_US = 3 * 86_400 * 1_000_000  # after this time without a result the batch is given up
FULL = "token_limit_exceeded"  # OpenAI's code for too many enqueued tokens of a model
REFUSED_THERE = "refused"
ENDED_THERE = frozenset(("completed", "expired", "cancelled"))
_US = 1_000_000

log = logging.getLogger("breakeven.batches")


@dataclass(slots=True)
class ProviderBatchSync:
    """State machine of one runner; `providers` by name."""

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
        """Start what is due; `found` are clients' open batches, `busy` still take lines."""
        for record in await asyncio.to_thread(self.store.unfinished):
            if record.id in self._tasks or record.id in busy:
                continue
            running = sum(task.get_name() == record.provider for task in self._tasks.values())
            if record.next_us <= self.clock.wall_us() and running < AT_ONCE:
                work = self._run_batch(record.id, found)
                self._tasks[record.id] = asyncio.create_task(work, name=record.provider)

    async def settle(self) -> None:
        """Wait until all running steps have ended."""
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
            log.warning(
                "provider batch was not updated, retrying batch=%s error=%s",
                outgoing_id,
                error.orig,
            )
            await self._rest(outgoing_id)
        except Exception:  # an unexpected error must not stop other batches
            log.exception("provider batch failed, retrying batch=%s", outgoing_id)
            await self._rest(outgoing_id)
        finally:
            self._tasks.pop(outgoing_id, None)

    async def _rest(self, outgoing_id: str) -> None:
        """Postpone a batch, or give it up after days, so that others have their turn."""
        with suppress(DBAPIError):  # while the database is unavailable, nothing is lost
            record = await asyncio.to_thread(self.store.find, outgoing_id)
            if record is not None and record.state != State.DONE:
                await self._later(record)

    async def _step_batch(self, outgoing_id: str, found: Mapping[str, BatchRecord]) -> bool:
        """Advance a batch by one state; return False if nothing more is due now."""
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
            return await self._later(record)  # no longer configured: it may be added again
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
        if state is State.COLLECTING:  # the collecting runner is dead
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
        """Look for the uploaded file; send it again if missing. A late duplicate is never read."""
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
        """Look for the created batch; create it again only once it certainly was not created."""
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
            await remote.cancel(made.id)  # another runner created one while this one was stalled
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
        """Cancel the batch, retried until it succeeds; results so far are still booked."""
        assert record.remote_id is not None
        try:
            await remote.cancel(record.remote_id)
        except (
            ProviderRefused,
            ProviderUnavailable,
            ProviderBusy,
        ) as error:  # it may have ended already; the poll will show
            log.info("provider batch was not cancelled batch=%s error=%s", record.id, error)
            return
        await self._move(record, cancel_us=self.clock.wall_us(), tries=0)

    async def _book(self, record: OutgoingRecord, remote: ProviderBatchClient) -> bool:
        found, failed = ResultFile(), ResultFile()
        failed.known = found.known  # each line has one result, in either file
        told = [(record.output_file_id, found), (record.error_file_id, failed)]
        files = [(file_id, counts) for file_id, counts in told if file_id is not None]
        for file_id, counts in files:
            await self._book_file(record, remote, file_id, counts.add_answer)
        for file_id, counts in files:
            if counts.has_failures:
                await self._book_file(record, remote, file_id, counts.add_failure)
        if left := await asyncio.to_thread(self.booker.count_lines, record):
            completed = (await remote.batch(record.remote_id or "")).completed
            # Unreadable entries of the error file failed, and cost nothing.
            unseen = max(found.odd, completed - found.done - failed.done)
            # An earlier, interrupted pass may have booked some of these.
            unseen -= record.lines - left - len(found.known)
            await asyncio.to_thread(self.booker.book_unseen, record, min(unseen, left))
        kept = record.why in ("completed", REFUSED_THERE)  # the provider will not process these
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
        """Return the lines of a batch that the provider did not process."""
        if record.state == State.CREATING:  # it may exist, and must not run unobserved
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
        """Delete the batch's files at the provider; otherwise they expire there."""
        for file_id in (record.input_file_id, record.output_file_id, record.error_file_id):
            if file_id is not None and remote is not None:
                try:
                    await remote.delete(file_id)
                except (ProviderUnavailable, ProviderBusy, ProviderRefused):
                    log.info(
                        "provider batch file was not deleted batch=%s provider=%s",
                        record.id,
                        record.provider,
                    )

    # -- in a thread --------------------------------------------------------------------------

    def _text(self, outgoing_id: str) -> bytes:
        """Return the input file, one request per line."""
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
        """Postpone the batch with a growing delay; return True if it was overdue and given up."""
        if why is not None:
            log.warning(
                "provider batch failed batch=%s provider=%s error=%s",
                record.id,
                record.provider,
                why,
            )
        if record.state in _THERE and self._is_overdue(record):
            return await self._move(record, state=State.RETURNING, why=LOST_THERE)
        next_us = self.clock.wall_us() + self.waits.delay_us(record.tries)
        now = await asyncio.to_thread(self.store.find, record.id)
        if now is not None:
            await self._move(now, next_us=next_us, tries=record.tries + 1, **values)
        return False

    async def _handle_refusal(self, record: OutgoingRecord, refused: ProviderRefused) -> bool:
        """Return the lines if the file or batch was refused; postpone if a result is missing."""
        now = await asyncio.to_thread(self.store.find, record.id)
        assert now is not None
        log.warning(
            "provider refused batch=%s provider=%s error=%s", record.id, record.provider, refused
        )
        if record.state in _BEFORE:
            return await self._move(now, state=State.RETURNING, why=REFUSED_THERE)
        return await self._later(now)

    def _is_overdue(self, record: OutgoingRecord) -> bool:
        return self.clock.wall_us() - record.created_us > OVERDUE_US

    def _remote(self, record: OutgoingRecord) -> ProviderBatchClient | None:
        """Return the provider's client; `None` if it is no longer configured."""
        known = self.providers.get(record.provider)
        return None if known is None else known.remote

    def _is_over(self, record: OutgoingRecord, found: Mapping[str, BatchRecord]) -> bool:
        """Return whether lines that the provider has not done must come back now."""
        batch = found.get(record.batch_id)
        if batch is None or batch.status != IN_PROGRESS:
            return True
        return self.clock.wall_us() >= batch.expires_us - self.spill_us // 2


_THERE = (State.CREATING, State.SENT, State.BOOKING)
_NOT_SENT = (State.READY, State.UPLOADING, State.UPLOADED, State.CREATING)
# State to return to if the provider certainly did nothing.
_BEFORE = {State.READY: State.READY, State.UPLOADED: State.UPLOADED}


def _uploaded_values(file_id: str) -> dict[str, Any]:
    return {"state": State.UPLOADED, "input_file_id": file_id, "tries": 0}


def _name(record: OutgoingRecord) -> str:
    return f"{record.id}.jsonl"


def _since_s(record: OutgoingRecord) -> int:
    """Return the creation time less an hour, because the provider's clock may differ."""
    return record.created_us // _US - 3600
