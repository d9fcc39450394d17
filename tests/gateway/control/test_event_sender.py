"""Every event is heard at least once, in order, from one host at a time, whatever fails between."""

import asyncio
import json
import random

import httpx
import pytest
from sqlalchemy import text

from gateway.config.settings import parse
from gateway.control import event_sender
from gateway.control.event_sender import EventSender
from ledger.database import make_engine, migrate, reading, sqlite_url
from ledger.event_cursors import LEASE_US
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.seals.sealer import Sealer
from ledger.writing.repository import LedgerRepository

CONFIG = {
    "models": {"m": {"targets": ["openai/gpt-4o-mini"]}},
    "providers": {"openai": {}},
    "events": {"webhook_env": "HOOK", "secret_env": "HOOK_SECRET", "batch": 3},
}
NOON_US = 1_780_056_000_000_000


class Hand:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.at_us = NOON_US

    def wall_us(self) -> int:
        return self.at_us


class Hook:
    """An address that hears, or fails as `chance` has it."""

    def __init__(self) -> None:
        self.heard: list[list[str]] = []
        self.ids: list[str] = []
        self.failing = 0.0
        self.chance = random.Random(5)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        message = json.loads(request.content)
        if self.chance.random() < self.failing:
            if self.chance.random() < 0.5:  # it was heard, and the answer is lost
                self._hear(message)
            raise httpx.ReadTimeout("late")
        self._hear(message)
        return httpx.Response(200)

    def _hear(self, message: dict) -> None:
        self.heard.append([event["id"] for event in message["events"]])
        self.ids.append(message["id"])


@pytest.fixture
def ledger(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    engine = make_engine(url, keep_open=True)
    yield engine
    engine.dispose()


def settle(ledger, *numbers: int) -> None:
    records: list[AttemptOpened | AttemptSettled] = []
    for number in numbers:
        opened = AttemptOpened(
            attempt_id=f"r{number}.1", request_id=f"r{number}", attempt_no=1,
            opened_us=NOON_US + number, key_id="k1", user_id=None, team_id="search",
            org_id="acme", kind="chat", stream=False, model="m", target="openai/gpt-4o-mini",
            backend="api", pool=None, engine=None, provider="openai",
            upstream_model="gpt-4o-mini", simulated=False, policy="default", policy_version="1",
            reason="cheapest", spill_reason=None, price_version=None, bound_pusd=10,
            prompt_tokens_estimate=1, ttft_predicted_us=None,
        )  # fmt: skip
        ended = AttemptSettled(
            attempt_id=f"r{number}.1", settled_us=NOON_US + number, status="finished",
            http_status=200, tokens=TokenCounts(input=1, output=1), basis="reported",
            cost_pusd=7, ttft_us=1, duration_us=2,
        )  # fmt: skip
        records += [opened, ended]
    LedgerRepository(ledger, host="h").import_records(records, journal="j", at_us=NOON_US)
    while Sealer(ledger).seal(at_us=NOON_US):
        pass


def sender(ledger, clock, **environ: str) -> EventSender:
    settings = parse(json.dumps(CONFIG), name="test")
    given = {"HOOK": "https://example.com/in", "HOOK_SECRET": "k", **environ}
    return EventSender(settings, ledger, clock, given)


def send(teller: EventSender, hook) -> bool:
    async def once() -> bool:
        async with httpx.AsyncClient(transport=httpx.MockTransport(hook)) as client:
            return await teller.send_events(client)

    return asyncio.run(once())


def test_a_feed_begins_with_what_comes_after_it_was_configured(ledger) -> None:
    hook, teller = Hook(), sender(ledger, Hand())
    settle(ledger, 1, 2)
    assert send(teller, hook)
    assert hook.heard == []
    settle(ledger, 3, 4, 5, 6)
    assert send(teller, hook)
    assert hook.heard == [["r3.1", "r4.1", "r5.1"], ["r6.1"]]
    assert send(teller, hook)
    assert len(hook.heard) == 2, "nothing is told twice that was heard"


def test_what_is_not_heard_is_told_again_by_whoever_may(ledger) -> None:
    """A host that dies between a post and its note: another goes on, from the last note."""
    clock, hook = Hand(), Hook()
    dying, other = sender(ledger, clock), sender(ledger, clock)
    assert send(dying, hook)
    settle(ledger, *range(1, 8))

    def die(request: httpx.Request) -> httpx.Response:
        if len(hook.heard) == 1:
            hook(request)
            raise asyncio.CancelledError
        return hook(request)

    with pytest.raises(asyncio.CancelledError):
        send(dying, die)
    assert not send(other, hook), "the dead one's turn is not over"
    clock.at_us += LEASE_US
    assert send(other, hook)
    assert hook.heard == [
        ["r1.1", "r2.1", "r3.1"], ["r4.1", "r5.1", "r6.1"],
        ["r4.1", "r5.1", "r6.1"], ["r7.1"],
    ]  # fmt: skip
    assert hook.ids[1] == hook.ids[2], "who hears it twice can tell"


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_left_out_whatever_fails(ledger, seed) -> None:
    clock, hook, chance = Hand(), Hook(), random.Random(seed)
    hook.chance, hook.failing = chance, 0.4
    tellers = [sender(ledger, clock) for _ in range(3)]
    send(tellers[0], hook)
    number = 0
    for _ in range(40):
        if chance.random() < 0.4:
            settle(ledger, *range(number + 1, number := number + chance.randint(2, 8)))
        clock.at_us += chance.choice((0, 3_000_000, LEASE_US))
        send(chance.choice(tellers), hook)
    hook.failing = 0.0
    for _ in range(3):
        clock.at_us += 10 * LEASE_US
        send(tellers[0], hook)
    with reading(ledger) as connection:
        expected = set(connection.execute(text("SELECT attempt_id FROM attempts")).scalars())
    heard = [event for batch in hook.heard for event in batch]
    assert set(heard) == expected
    firsts = list(dict.fromkeys(heard))
    assert firsts == sorted(firsts, key=lambda name: int(name[1:].partition(".")[0]))


def test_the_control_who_moves_on_before_it_is_heard_leaves_events_out(ledger, monkeypatch) -> None:
    clock, hook = Hand(), Hook()
    teller = sender(ledger, clock)
    send(teller, hook)
    settle(ledger, 1, 2)
    monkeypatch.setattr(event_sender.SignedWebhook, "post", lambda *_: asyncio.sleep(0, True))
    send(teller, hook)
    monkeypatch.undo()
    clock.at_us += LEASE_US
    send(teller, hook)
    assert hook.heard == []


async def test_without_a_webhook_nothing_runs(ledger) -> None:
    await sender(ledger, Hand(), HOOK="").run()


async def test_it_goes_on_by_itself_after_a_commit_and_after_a_failure(ledger, monkeypatch) -> None:
    clock, hook, turns, turned = Hand(), Hook(), [], asyncio.Event()

    async def tick(_seconds: float) -> None:
        turns.append(None)
        turned.set()
        clock.at_us += LEASE_US
        await asyncio.sleep(0.005)

    async def until(check) -> None:
        async with asyncio.timeout(20):
            while not check():
                turned.clear()
                await turned.wait()

    monkeypatch.setattr(event_sender, "next_tick", tick)
    monkeypatch.setattr(
        event_sender, "webhook_client",
        lambda: httpx.AsyncClient(transport=httpx.MockTransport(hook)),
    )  # fmt: skip
    hook.failing = 1.0
    running = asyncio.create_task(sender(ledger, clock).run())
    await until(lambda: len(turns) >= 3)
    await asyncio.to_thread(settle, ledger, 1)
    before = len(turns)
    await until(lambda: len(turns) >= before + 5)
    hook.failing, hook.heard = 0.0, []
    await until(lambda: hook.heard)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert hook.heard[0] == ["r1.1"]
