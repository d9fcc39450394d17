"""Lines on their way out: in chunks, each to the batch that it is planned for."""

import pytest

from gateway.batches import collecting
from gateway.batches.collecting import Collector
from gateway.batches.handing import Handed
from gateway.batches.sending import NotOnward
from gateway.clock import Clock
from ledger.batches.lines import Claim, LineStore, NewLine
from ledger.batches.outgoing import OutgoingStore, State, Terms
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine
from ledger.journals.records import AttemptOpened

OWNER = "seat/1"


class Planning:
    """What a worker says of a line; `odd` is how it answers for some."""

    def __init__(self) -> None:
        self.odd: dict[int, object] = {}

    async def onward(self, claim: Claim) -> Handed | None:
        odd = self.odd.get(claim.number, "alpha")
        if odd is NotOnward:
            raise NotOnward
        if odd is None:
            return None
        name = claim.request_id
        opened = AttemptOpened(
            attempt_id=f"{name}.1", request_id=name, attempt_no=1, opened_us=1, key_id="k",
            user_id=None, team_id="t", org_id="o", kind="chat", stream=False, model="m",
            target=f"{odd}/m", backend="api", pool=None, engine=None, provider=str(odd),
            upstream_model="m", simulated=True, policy="p", policy_version="v", reason="cheapest",
            spill_reason=None, price_version=1, bound_pusd=5, prompt_tokens_estimate=1,
        )  # fmt: skip
        terms = Terms(n=1, most=1, told=True, prompt_bound=1)
        return Handed(str(odd), "m", b"{}", opened, ("team:t",), terms)


class Desk:
    def __init__(self, url: str) -> None:
        self.engine = make_engine(url)
        self.lines, self.batches = LineStore(self.engine, OWNER), BatchStore(self.engine)
        self.store, self.planning = OutgoingStore(self.engine, OWNER), Planning()
        numbers = iter(range(1, 99))
        self.collector = Collector(
            self.lines, self.store, self.batches, self.planning, OWNER, Clock(),
            lambda prefix: f"{prefix}{next(numbers)}",
        )  # fmt: skip

    def put(self, count: int) -> BatchRecord:
        far_us = Clock().wall_us() + 10**12
        record = BatchRecord("batch_1", "t", "k", "/v1/chat/completions", "24h", "f", 5, far_us)
        self.batches.create(record)
        self.lines.add("batch_1", [NewLine(n, f"c{n}", "m", b"{}") for n in range(1, count + 1)])
        self.batches.take("batch_1", OWNER, now_us=0, until_us=1)
        self.batches.move("batch_1", OWNER, ("validating",), status="in_progress", total=count)
        return record


@pytest.fixture
def desk(ledger_url: str) -> Desk:
    return Desk(ledger_url)


async def test_each_provider_and_model_has_a_batch(desk: Desk, monkeypatch) -> None:
    monkeypatch.setattr(collecting, "CHUNK", 2)
    record = desk.put(5)
    desk.planning.odd = {2: "beta"}
    assert await desk.collector.collect(record, "m", 9) == 5
    found = {one.provider: (one.lines, one.state) for one in desk.store.unfinished()}
    assert found == {"alpha": (4, State.READY), "beta": (1, State.READY)}
    assert desk.collector.collecting == set()
    assert await desk.collector.collect(record, "m", 9) == 0


async def test_no_more_than_wanted_and_a_full_one_is_closed(desk: Desk, monkeypatch) -> None:
    monkeypatch.setattr(collecting, "CHUNK", 2)
    monkeypatch.setattr(collecting, "LINES", 2)
    record = desk.put(9)
    assert await desk.collector.collect(record, "m", 5) == 5
    assert sorted(one.lines for one in desk.store.unfinished()) == [1, 2, 2]


async def test_what_no_batch_takes_stays_and_is_marked(desk: Desk) -> None:
    record = desk.put(3)
    desk.planning.odd = {1: NotOnward, 3: None}
    assert await desk.collector.collect(record, "m", 9) == 1
    far_us = Clock().wall_us() + 10**9
    again = desk.lines.claim("m", 9, now_us=far_us - 5, until_us=far_us, ends_by_us=0)
    assert [one.number for one in again] == [1], "for the ordinary way at once"


async def test_another_hosts_batch_is_left_to_it(desk: Desk) -> None:
    record = desk.put(3)
    now_us = Clock().wall_us()
    assert desk.batches.take("batch_1", "other/1", now_us=now_us, until_us=now_us + 10**9)
    assert await desk.collector.collect(record, "m", 9) == 0
    assert desk.store.unfinished() == []
