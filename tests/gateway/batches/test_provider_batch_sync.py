"""A batch at a provider, its runner killed at every step: each line is run and booked once."""

import asyncio
import inspect
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import Engine, insert, text
from sqlalchemy.event import listen

from backends.secret import Secret
from backends.simulator.jobs import SimulatedBatches
from gateway.batches.poll_intervals import PollIntervals
from gateway.batches.provider_batch_client import (
    BatchProviders,
    ProviderBatchClient,
    ProviderUnavailable,
)
from gateway.batches.provider_batch_sync import AT_ONCE, OVERDUE_US, ProviderBatchSync
from ledger.batches.lines import LineStore, NewLine
from ledger.batches.outgoing import (
    LeavingLine,
    LineTerms,
    OutgoingRecord,
    OutgoingStore,
    ProviderBatchState,
)
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine, sqlite_url
from ledger.journals.records import AttemptOpened
from ledger.orm import tables as orm
from ledger.prices.rates import Price, PriceTerms, TierRates, rates_from
from ledger.verify.checks import verify

CHAT = "/v1/chat/completions"
START_US = 1_780_000_000_000_000
LINES = 3
BOUND_PUSD = 1_000_000
BUDGET = "team:search@month"
PRICE = Price(
    1, "openai/m", "test", 0,
    PriceTerms(
        rates_from({"input": 1000, "output": 4000}),
        (TierRates("batch", 0, rates_from({"input": 500, "output": 2000})),),
    ),
)  # fmt: skip


class KillSignal(BaseException):
    """What a SIGKILL is to the code that it meets."""


@dataclass
class Fate:
    """Kills a life at its `at`-th step, before or after what is done there; dead is dead."""

    at: int | None = None
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.at is not None and self.steps >= self.at:
            raise KillSignal


class Mortal:
    """Every call of these methods is two steps of the fate: before it, and after it was done."""

    def __init__(self, real: Any, fate: Fate, names: tuple[str, ...]) -> None:
        self._real, self._fate, self._names = real, fate, names

    def __getattr__(self, name: str) -> Any:
        real, fate = getattr(self._real, name), self._fate
        if name not in self._names:
            return real
        if inspect.iscoroutinefunction(real):

            async def awaited(*given: Any, **named: Any) -> Any:
                fate.step()
                found = await real(*given, **named)
                fate.step()
                return found

            return awaited

        def called(*given: Any, **named: Any) -> Any:
            fate.step()
            found = real(*given, **named)
            fate.step()
            return found

        return called


@dataclass
class TickingClock:
    """A clock of the test's own."""

    us: int = START_US

    def wall_us(self) -> int:
        return self.us

    def now_s(self) -> float:
        return self.us / 1e6


@dataclass
class World:
    """One database and one provider; `asked` counts what the provider was made to do."""

    engine: Any
    clock: TickingClock = field(default_factory=TickingClock)
    asked: Counter = field(default_factory=Counter)
    fails: dict[str, int] = field(default_factory=dict)
    lives: int = 0
    remote: type[ProviderBatchClient] = ProviderBatchClient

    def __post_init__(self) -> None:
        self.jobs = SimulatedBatches(self._ask, begin_s=0.0)
        self.batches = BatchStore(self.engine)

    async def _ask(self, path: str, body: bytes, name: str) -> tuple[int, bytes]:
        self.asked[name] += 1
        status = self.fails.get(name.split("-")[1], 200)
        if status != 200:
            return status, json.dumps({"error": {"message": "no", "code": "bad"}}).encode()
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        choice = {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}
        return 200, json.dumps({"id": "x", "choices": [choice], "usage": usage}).encode()

    def life(self, at: int | None = None) -> tuple[ProviderBatchSync, Fate]:
        """A runner; its earlier lives are dead."""
        self.lives += 1
        fate = Fate(at)
        store = OutgoingStore(self.engine, f"seat/{self.lives}")
        store.take_over("seat")
        transport = httpx.ASGITransport(app=self.jobs)
        remote = Mortal(
            self.remote("http://provider/v1", Secret("key"), transport), fate,
            ("upload", "create", "find_file", "find_batch", "batch", "cancel", "delete"),
        )  # fmt: skip
        stored = Mortal(store, fate, ("move", "settle_lines"))
        waits = PollIntervals(first=1.0, most=1.0, settled=5.0)
        providers = {"alpha": BatchProviders(remote)}
        return ProviderBatchSync(stored, providers, self.clock, 0, waits), fate

    def found(self) -> dict[str, BatchRecord]:
        return {item.id: item for item in self.batches.unfinished()}

    async def live(self, at: int | None = None, looks: int = 40) -> Fate:
        """One life, until all is done or it is killed."""
        courier, fate = self.life(at)
        for _ in range(looks):
            try:
                await courier.step(self.found())
            except KillSignal:
                break
            await courier.settle()
            if fate.at is not None and fate.steps >= fate.at:
                break
            await asyncio.sleep(0)
            self.clock.us += 2_000_000
            if not courier.store.unfinished():
                break
        return fate

    def rows(self) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            found = connection.execute(text("SELECT * FROM attempts ORDER BY seq"))
            return [dict(row) for row in found.mappings()]

    def lines(self) -> list[tuple[str, bool | None, int]]:
        with self.engine.connect() as connection:
            query = text("SELECT state, ok, kept FROM batch_lines ORDER BY number")
            return [tuple(row) for row in connection.execute(query)]


def opened(name: str) -> AttemptOpened:
    return AttemptOpened(
        attempt_id=f"{name}.1", request_id=name, attempt_no=1, opened_us=START_US, key_id="k",
        user_id=None, team_id="search", org_id="acme", kind="chat", stream=False, model="m",
        target="alpha/m", backend="api", pool=None, engine=None, provider="alpha",
        upstream_model="m", simulated=True, policy="p", policy_version="v", reason="cheapest",
        spill_reason=None, price_version=1, bound_pusd=BOUND_PUSD, prompt_tokens_estimate=10,
    )  # fmt: skip


def _without_disk(connection: Any, _: Any) -> None:
    """The machine does not fail here, only the process."""
    connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(scope="module")
def engine(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One for all lives here: each knows its statements anew otherwise."""
    path = tmp_path_factory.mktemp("courier") / "ledger.db"
    shutil.copyfile(migrated, path)
    made = make_engine(sqlite_url(path), keep_open=True)
    listen(made, "connect", _without_disk)
    yield made
    made.dispose()


@pytest.fixture
def world(engine: Engine) -> World:
    """A batch of three lines, given away to `alpha`, under a hard budget."""
    made = World(engine)
    with engine.begin() as connection:
        for table in reversed(orm.LedgerBase.metadata.sorted_tables):
            connection.execute(table.delete())
        document = msgspec.to_builtins(PRICE)
        row = {"version": 1, "name": PRICE.name, "since_us": 0, "source": "", "recorded_us": 0}
        connection.execute(insert(orm.PriceVersionRow), [{**row, "price": document}])
        budget = {"id": BUDGET, "scope": "team:search", "period": "month", "hard": True}
        amount = {"limit_pusd": 10 * BOUND_PUSD, "timezone": "UTC", "created_us": 0}
        connection.execute(insert(orm.BudgetRow), [{**budget, **amount}])
    lines, store = LineStore(engine, "seat/0"), OutgoingStore(engine, "seat/0")
    record = BatchRecord(
        "batch_1", "search", "k", CHAT, "24h", "f", START_US, START_US + 10**12, total=LINES
    )
    made.batches.create(record)
    names = range(1, LINES + 1)
    lines.add("batch_1", [NewLine(n, f"c{n}", "m", b'{"model":"m"}') for n in names])
    made.batches.lease("batch_1", "v", now_us=0, until_us=1)
    made.batches.move("batch_1", "v", ("validating",), status="in_progress")
    claims = lines.claim_onward("batch_1", "m", 9, now_us=START_US, until_us=START_US + 10**9)
    terms = LineTerms(n=1, most=4, told=True, prompt_bound=20)
    leaving = [
        LeavingLine(claim, opened(claim.request_id), ("team:search",), claim.body, terms)
        for claim in claims
    ]
    outgoing = OutgoingRecord(
        "out_1", "batch_1", "alpha", "m", CHAT, ProviderBatchState.COLLECTING, START_US
    )
    store.create(outgoing, until_us=START_US + 10**9)
    assert len(store.send_lines("out_1", leaving, at_us=START_US).gone) == LINES
    return made


def assert_each_once(world: World) -> None:
    names = [f"batch_1-{number}-1.1" for number in range(1, LINES + 1)]
    assert world.asked == dict.fromkeys(names, 1), "no line was run twice, and none was left out"
    rows = world.rows()
    assert sorted(row["attempt_id"] for row in rows) == names
    assert {(row["status"], row["tier"], row["basis"]) for row in rows} == {
        ("finished", "batch", "reported")
    }
    assert {row["cost_pusd"] for row in rows} == {10 * 500 + 2 * 2000}
    assert world.lines() == [("done", True, False)] * LINES
    found = world.batches.find("batch_1", "search")
    assert (found.completed, found.failed) == (LINES, 0)
    with world.engine.connect() as connection:
        assert verify(connection).findings == ()
        grant = connection.execute(text("SELECT granted_pusd, spent_pusd FROM grants")).all()
    assert grant == [(str(LINES * 9000), str(LINES * 9000))], "nothing is held any more"


async def test_lines_are_out_and_their_money_is_held(world) -> None:
    assert world.lines() == [("out", None, False)] * LINES
    assert {row["settled_us"] for row in world.rows()} == {None}
    with world.engine.connect() as connection:
        assert verify(connection).findings == ()
        (granted,) = connection.execute(text("SELECT granted_pusd FROM grants")).scalars()
    assert int(granted) == LINES * BOUND_PUSD


async def test_there_and_back(world) -> None:
    await world.live()
    assert_each_once(world)
    assert world.jobs.made == 1
    assert world.jobs.files == {}, "nothing is left at the provider"


async def killed_at(world: World, at: int) -> Fate:
    fate = await world.live(at)
    await world.live()
    return fate


@pytest.mark.parametrize("at", range(1, 27))
async def test_killed_at_any_step_each_line_is_run_and_booked_once(world, at: int) -> None:
    fate = await killed_at(world, at)
    assert fate.steps >= at, "a life has fewer steps: take out the last of these"
    assert_each_once(world)
    assert world.jobs.made == 1


class Forgetful(ProviderBatchClient):
    """Does not look for what may have been made."""

    async def find_batch(self, mark: str, since_s: int) -> None:
        return None


async def test_without_looking_first_a_batch_would_be_run_twice(world) -> None:
    """The negative control: found where a life ends right after the batch was made."""
    world.remote = Forgetful
    courier, fate = world.life()
    create = courier.providers["alpha"].remote._real.create

    async def made_and_killed(*given: Any) -> None:
        await create(*given)
        fate.at = 1
        raise KillSignal

    courier.providers["alpha"].remote._real.create = made_and_killed
    for _ in range(3):
        await courier.step(world.found())
        await courier.settle()
        world.clock.us += 2_000_000
    await world.live()
    assert world.jobs.made == 2
    assert max(world.asked.values()) == 2


def renamed(line: bytes, name: str) -> bytes:
    return json.dumps({**json.loads(line), "custom_id": name}).encode()


def moved(line: bytes) -> bytes:
    told = json.loads(line)
    return json.dumps({"custom_id": told["custom_id"], "result": told["response"]}).encode()


ODD = {
    "twice each": (lambda lines: [*lines, *lines], 0, 3),
    "in another order": (lambda lines: lines[::-1], 0, 3),
    "one left out": (lambda lines: lines[1:], 1, 2),
    "all left out": (lambda _: [], 3, 0),
    "under other names": (lambda lines: [renamed(line, "x") for line in lines], 3, 0),
    "under a name of many digits": (
        lambda lines: [renamed(lines[0], f"a-{'9' * 5000}-1.1"), *lines[1:]], 1, 2),
    "one that is cut off": (lambda lines: [lines[0][:-9], *lines[1:]], 1, 2),
    "under another member": (lambda lines: [moved(line) for line in lines], 3, 0),
    "with numbers that are none": (
        lambda lines: [line.replace(b'"finish_reason"', b'"x":NaN,"finish_reason"')
                       for line in lines], 0, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
async def test_what_was_done_is_booked_whatever_its_results_are(world, name) -> None:
    """Red before: a line whose result was left out, or that nobody could read, cost nothing."""
    changed, unseen, finished = ODD[name]

    class Odd(ProviderBatchClient):
        async def lines(self, file_id: str):
            for line in changed([line async for line in super().lines(file_id)]):
                yield line

    world.remote = Odd
    await world.live()
    rows = world.rows()
    costs = Counter((row["status"], row["cost_pusd"]) for row in rows)
    expected = Counter(
        {("finished", 9000): finished, ("upstream_error", 20 * 500 + 4 * 2000): unseen}
    )
    assert costs == +expected
    assert Counter(state for state, *_ in world.lines()) == +Counter(done=finished, waiting=unseen)
    with world.engine.connect() as connection:
        assert verify(connection).findings == ()


def refused(line: bytes) -> bytes:
    told = {"status_code": 400, "body": {"error": {"message": "no", "code": "invalid_value"}}}
    return json.dumps({**json.loads(line), "response": told}).encode()


BOOKED, UNSEEN, FREE = ("finished", 9000), ("upstream_error", 18000), ("rejected", 0)
# Lines of the output and of the error file, how many were done, and what must be booked.
SPLIT = {
    "a refusal beside answers": (lambda a, b, _: ([refused(a), b], []), 2, [FREE, BOOKED, UNSEEN]),
    "a refusal before its answer": (
        lambda a, b, c: ([refused(a), a, b, c], []), 3, [BOOKED, BOOKED, BOOKED]),
    "a refusal in the other file": (
        lambda a, b, c: ([refused(c), a], [b, c]), 3, [BOOKED, BOOKED, BOOKED]),
    "an answer among the errors": (lambda a, b, _: ([a], [b]), 2, [BOOKED, BOOKED, FREE]),
    "errors that nobody can read": (lambda a, b, _: ([a, b], [b"x"]), 2, [BOOKED, BOOKED, FREE]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLIT)
async def test_answers_count_in_whichever_file_they_stand(world, name) -> None:
    """Red before: a refusal hid a line that was done, and an answer among errors made one."""
    split, completed, expected = SPLIT[name]

    class SplitClient(ProviderBatchClient):
        async def lines(self, file_id: str):
            name = file_id.removeprefix("errors-")
            found = sorted([line async for line in super().lines(name)])
            for line in split(*found)[file_id != name]:
                yield line

        async def batch(self, batch_id: str) -> Any:
            there = await super().batch(batch_id)
            errors = there.output_file_id and f"errors-{there.output_file_id}"
            status = "cancelled" if there.status == "completed" else there.status
            return replace(there, status=status, completed=completed, error_file_id=errors)

    world.remote = SplitClient
    await world.live()
    rows = sorted(world.rows(), key=lambda row: row["attempt_id"])
    assert [(row["status"], row["cost_pusd"]) for row in rows] == expected


@pytest.mark.parametrize("at", range(22, 28))
async def test_killed_among_lines_without_results_it_books_no_more_than_were_done(
    world, at: int
) -> None:
    """Red before, at 24 and 25: the next life booked as many once more."""

    class PartialClient(ProviderBatchClient):
        async def lines(self, file_id: str):
            for line in sorted([line async for line in super().lines(file_id)])[:1]:
                yield line

        async def batch(self, batch_id: str) -> Any:
            return replace(await super().batch(batch_id), completed=2)

    world.remote = PartialClient
    fate = await killed_at(world, at)
    assert fate.steps >= at, "a life has fewer steps: take out the last of these"
    costs = Counter((row["status"], row["cost_pusd"]) for row in world.rows())
    assert costs == Counter([BOOKED, UNSEEN, FREE])


async def test_lines_that_nobody_says_were_done_cost_nothing(world) -> None:
    """The control: it tells no count, and leaves out all results."""

    class Silent(ProviderBatchClient):
        async def lines(self, file_id: str):
            for line in [line async for line in super().lines(file_id)][:0]:
                yield line

        async def batch(self, batch_id: str) -> Any:
            return replace(await super().batch(batch_id), completed=0)

    world.remote = Silent
    await world.live()
    assert {row["cost_pusd"] for row in world.rows()} == {0}
    assert world.lines() == [("waiting", None, True)] * LINES


@pytest.mark.parametrize("completed", [LINES, 0])
async def test_what_a_batch_did_before_it_failed_is_booked(world, completed) -> None:
    """Red before: a batch that fails as a whole cost nothing, whatever it had answered."""

    class FailingClient(ProviderBatchClient):
        async def batch(self, batch_id: str) -> Any:
            there = await super().batch(batch_id)
            done = there.status == "completed"
            return replace(there, status="failed", completed=completed) if done else there

    world.remote = FailingClient
    await world.live()
    assert_each_once(world)


class Mute(ProviderBatchClient):
    """It takes batches, and never says what became of them."""

    async def batch(self, batch_id: str) -> Any:
        raise ProviderUnavailable("500")


class Slow(ProviderBatchClient):
    async def batch(self, batch_id: str) -> Any:
        return replace(await super().batch(batch_id), status="paused")


@pytest.mark.parametrize("remote", [Mute, Slow])
async def test_what_a_provider_never_ends_is_booked_at_its_bound(world, remote) -> None:
    """Red before: its lines were held for ever, and never in the books."""
    world.remote = remote
    await world.live(looks=3)
    assert {row["settled_us"] for row in world.rows()} == {None}
    world.clock.us += OVERDUE_US
    await world.live()
    assert {row["cost_pusd"] for row in world.rows()} == {20 * 500 + 4 * 2000}
    with world.engine.connect() as connection:
        assert verify(connection).findings == ()


class Boaster(ProviderBatchClient):
    """It says that it did more than any number of lines, and has no result."""

    async def lines(self, file_id: str):
        for line in [line async for line in super().lines(file_id)][:0]:
            yield line

    async def batch(self, batch_id: str) -> Any:
        return replace(await super().batch(batch_id), completed=10**30)


async def test_no_more_was_done_than_there_are_lines(world) -> None:
    """Red before: the batch stood still for good."""
    world.remote = Boaster
    await world.live()
    assert {row["cost_pusd"] for row in world.rows()} == {20 * 500 + 4 * 2000}


class Defective(ProviderBatchClient):
    """Whatever it answers, something here cannot go on with it."""

    looks = 0

    async def batch(self, batch_id: str) -> Any:
        type(self).looks += 1
        raise KeyError(batch_id)


async def test_a_batch_that_stands_still_rests_and_is_given_up_one_day(world, monkeypatch) -> None:
    """Red before: it was tried with every look, for ever, and its lines were held."""
    world.remote = Defective
    monkeypatch.setattr(Defective, "looks", 0)
    courier, _ = world.life()
    for _ in range(20):  # at one instant
        await courier.step(world.found())
        await courier.settle()
        world.clock.us = max(world.clock.us, START_US + 2_000_000)
    assert Defective.looks == 1
    world.clock.us += OVERDUE_US
    await world.live()
    assert {row["cost_pusd"] for row in world.rows()} == {20 * 500 + 4 * 2000}


class HangingClient(ProviderBatchClient):
    """A call that never ends."""

    async def batch(self, batch_id: str) -> Any:
        await asyncio.Event().wait()


async def test_one_providers_slowness_keeps_no_other_from_its_turn(world) -> None:
    """Red before: four calls that hang held up every batch of the host."""
    courier, _ = world.life()
    hanging = HangingClient("http://beta/v1", None, httpx.ASGITransport(app=world.jobs))
    courier.providers = {**courier.providers, "beta": BatchProviders(hanging)}
    for number in range(2 * AT_ONCE):
        made = OutgoingRecord(
            f"out_0{number}", "batch_1", "beta", "m", CHAT, ProviderBatchState.SENT, START_US,
            lines=1, remote_id="b",
        )  # fmt: skip
        courier.store.create(made, until_us=START_US)
    for _ in range(400):
        await courier.step(world.found())
        await asyncio.sleep(0.01)
        world.clock.us += 2_000_000
        if all(row["settled_us"] for row in world.rows()):
            break
    assert [task.get_name() for task in courier._tasks.values()].count("beta") == AT_ONCE
    await courier.stop()
    assert_each_once(world)
