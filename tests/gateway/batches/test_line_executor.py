"""What is in a runner's hands: sent, stored, given back; never lost, never doubled."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy.exc import OperationalError

from gateway.batches.line_executor import LineExecutor
from gateway.batches.line_outcome import ConnectionLost, LineAnswer
from gateway.clock import Clock
from ledger.batches.lines import LineClaim, LineStore, NewLine
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine

GOOD = LineAnswer(200, "r", b"{}")
WAITS = LineAnswer(503, "r", b'{"error":{"code":"no_idle_engine"}}')


class Lines(LineStore):
    """`away`: how many answers find no database."""

    away = 0

    def answer(self, claim: LineClaim, line: bytes, *, ok: bool) -> bool:
        if self.away:
            self.away -= 1
            raise OperationalError("x", {}, Exception("locked"))
        return super().answer(claim, line, ok=ok)


class Gateway:
    """Stands where a sender does; `say` answers a claim."""

    def __init__(self, say: Callable[[LineClaim], LineAnswer | ConnectionLost | None]) -> None:
        self.say, self.asked, self.spills = say, [], []
        self.out = self.most = 0

    async def send(self, claim: LineClaim, *, spill: bool) -> LineAnswer | ConnectionLost:
        self.asked.append(claim.request_id)
        self.spills.append(spill)
        self.out += 1
        self.most = max(self.most, self.out)
        try:
            said = self.say(claim)
            await asyncio.sleep(0.02 if said else 60.0)
            assert said is not None
            return said
        finally:
            self.out -= 1


@pytest.fixture
def engine(ledger_url):
    return make_engine(ledger_url)


@pytest.fixture
def put(engine):
    def make(total: int, expires_us: int = 10**18) -> LineStore:
        batches, lines = BatchStore(engine), Lines(engine, "seat/me")
        batches.create(BatchRecord("b", "search", "k", "/v1/x", "24h", "f", 5, expires_us))
        lines.add("b", [NewLine(n, f"c{n}", "own", b"{}") for n in range(1, total + 1)])
        batches.lease("b", "v", now_us=1, until_us=2)
        batches.move("b", "v", ("validating",), status="in_progress", total=total)
        return lines

    return make


def carrier(lines: LineStore, gateway: Gateway, most: int = 4) -> LineExecutor:
    return LineExecutor(lines, gateway, Clock(), most=most, spill_us=3600 * 10**6)


async def fed(executor: LineExecutor, until: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not until():
            await executor.feed(["own"])
            await asyncio.sleep(0.01)


async def test_all_are_answered_and_never_too_many_at_once(put, engine) -> None:
    lines, gateway = put(30), Gateway(lambda _: GOOD)
    this_carrier = carrier(lines, gateway)
    await fed(this_carrier, lambda: this_carrier.tally.ok == 30)
    assert len(set(gateway.asked)) == len(gateway.asked) == 30
    assert 1 < gateway.most <= 4
    assert BatchStore(engine).find("b", "search").completed == 30
    assert this_carrier.open_claims == []
    assert set(gateway.spills) == {False}


async def test_what_waits_keeps_its_claim_and_its_try(put) -> None:
    said = iter([WAITS] * 3)
    gateway = Gateway(lambda _: next(said, GOOD))
    this_carrier = carrier(put(1), gateway)
    await fed(this_carrier, lambda: this_carrier.tally.ok == 1)
    assert gateway.asked == ["b-1-1"] * 4


async def test_what_broke_is_another_try_later(put, engine) -> None:
    gateway = Gateway(lambda _: ConnectionLost(sent=True))
    lines = put(1)
    this_carrier = carrier(lines, gateway)
    await fed(this_carrier, lambda: this_carrier.tally.again == 1 and not this_carrier.open_claims)
    later = Clock().wall_us() + 60 * 10**6
    (claim,) = lines.claim("own", 1, now_us=later, until_us=later + 1)
    assert (claim.sent, claim.failures) == (2, 1)


async def test_an_answer_waits_for_the_database(put, monkeypatch) -> None:
    monkeypatch.setattr("gateway.batches.line_executor.RETRY_S", 0.01)
    lines = put(1)
    lines.away = 3
    gateway = Gateway(lambda _: GOOD)
    this_carrier = carrier(lines, gateway)
    await fed(this_carrier, lambda: this_carrier.tally.ok == 1)
    assert gateway.asked == ["b-1-1"]


async def test_near_the_end_lines_may_spill(put) -> None:
    gateway = Gateway(lambda _: GOOD)
    this_carrier = carrier(put(1, Clock().wall_us() + 1800 * 10**6), gateway)
    await fed(this_carrier, lambda: this_carrier.tally.ok == 1)
    assert gateway.spills == [True]


async def test_what_another_runner_has_by_now_is_let_go(put, engine) -> None:
    """A runner that stood still for longer than its leases."""
    lines, gateway = put(9), Gateway(lambda _: None)
    first_carrier = carrier(lines, gateway)
    await fed(first_carrier, lambda: gateway.out == 2)
    later = Clock().wall_us() + 3600 * 10**6
    other = LineStore(engine, "other/1")
    taken = other.claim("own", 9, now_us=later, until_us=later + 10**9)
    assert {claim.number for claim in first_carrier.open_claims} <= {
        claim.number for claim in taken
    }
    await first_carrier.renew()
    assert (first_carrier.open_claims, gateway.out) == ([], 0)
    assert other.running("b", later) == len(taken)


async def test_a_batch_that_is_over_is_hung_up_on(put) -> None:
    lines, gateway = put(9), Gateway(lambda _: None)
    this_carrier = carrier(lines, gateway)
    await fed(this_carrier, lambda: gateway.out == 2)
    await this_carrier.drop(lambda claim: claim.number == 1)
    assert gateway.out == 1
    assert [claim.number for claim in this_carrier.open_claims] == [2]
    assert lines.running("b", Clock().wall_us()) == 1
    await this_carrier.renew()
    await this_carrier.stop()
    assert gateway.out == 0
    assert lines.running("b", 0) == 0
