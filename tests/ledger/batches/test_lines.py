"""Lines between two runners: each claimed by one, each answered once, whoever dies in between."""

import threading
from collections import Counter

import pytest

from ledger.batches import lines as batchlines
from ledger.batches.lines import LineStore, NewLine
from ledger.batches.store import BatchRecord, BatchStore

NOW_US, UNTIL_US = 1000, 2000


@pytest.fixture
def batches(engine) -> BatchStore:
    return BatchStore(engine)


@pytest.fixture
def make(engine, batches):
    """`make(count)`: a batch in progress with so many lines."""

    def made(count: int, name: str = "batch_1", model: str = "own") -> None:
        batches.create(BatchRecord(name, "search", "k", "/v1/x", "24h", "f", 10, 10**9))
        numbers = range(1, count + 1)
        LineStore(engine, "seat/x").add(
            name, [NewLine(number, f"c{number}", model, b"{}") for number in numbers]
        )
        batches.lease(name, "v", now_us=0, until_us=1)
        batches.move(name, "v", ("validating",), status="in_progress", total=count)

    return made


def claim(store: LineStore, limit: int = 9, now_us: int = NOW_US, model: str = "own"):
    return store.claim(model, limit, now_us=now_us, until_us=now_us + 1000)


def test_a_line_is_claimed_once_and_the_oldest_first(engine, make):
    make(3)
    make(1, "batch_2")
    make(1, "batch_3", "other")
    item, two = LineStore(engine, "seat/1"), LineStore(engine, "seat/2")
    assert [(c.batch_id, c.number) for c in claim(item, 2)] == [("batch_1", 1), ("batch_1", 2)]
    assert [(c.batch_id, c.number) for c in claim(two)] == [("batch_1", 3), ("batch_2", 1)]
    assert claim(item) == []
    assert item.models() == ["other", "own"]


def test_every_try_has_an_id_of_its_own(engine, make):
    make(1)
    store = LineStore(engine, "seat/1")
    (first,) = claim(store)
    store.put_back(first, next_us=NOW_US + 50, failed=True)
    assert claim(store) == [], "not before its time"
    (second,) = claim(store, now_us=NOW_US + 50)
    assert (first.request_id, second.request_id) == ("batch_1-1-1", "batch_1-1-2")
    assert (first.failures, second.failures) == (0, 1)


def test_the_claim_of_the_dead_is_over_with_its_lease(engine, make, batches):
    make(1)
    dead, living = LineStore(engine, "seat/1"), LineStore(engine, "other/2")
    (lost,) = claim(dead)
    assert claim(living, now_us=UNTIL_US - 1) == []
    (taken,) = claim(living, now_us=UNTIL_US)
    assert living.running("batch_1", UNTIL_US) == 1
    assert not dead.answer(lost, b"late", ok=True), "it came back to life"
    dead.put_back(lost)
    assert dead.renew([lost], until_us=10**8) == [lost]
    assert living.answer(taken, b"answer", ok=True)
    assert not living.answer(taken, b"twice", ok=True)
    assert list(living.answers("batch_1", ok=True)) == [b"answer"]
    found = batches.find("batch_1", "search")
    assert (found.completed, found.failed) == (1, 0)


def test_a_renewed_claim_stays(engine, make):
    make(1)
    store, other = LineStore(engine, "seat/1"), LineStore(engine, "seat/2")
    assert store.renew(claim(store), until_us=10**7) == []
    assert claim(other, now_us=UNTIL_US) == []


def test_the_next_life_of_a_seat_has_its_lines_at_once(engine, make, batches):
    make(2)
    batches.lease("batch_1", "100%_seat/1", now_us=5, until_us=10**8)
    before, other = LineStore(engine, "100%_seat/1"), LineStore(engine, "1000_seat/1")
    claim(before, 1)
    claim(other, 1)
    after = LineStore(engine, "100%_seat/2")
    after.take_over("100%_seat")
    assert [item.number for item in claim(after)] == [1], "the other seat keeps its own"
    assert batches.lease("batch_1", "100%_seat/2", now_us=6, until_us=7)


def test_released_lines_are_free(engine, make):
    make(2)
    store = LineStore(engine, "seat/1")
    claim(store)
    store.release()
    assert len(claim(LineStore(engine, "seat/2"))) == 2


def test_nothing_is_claimed_of_a_batch_that_is_over(engine, make, batches):
    make(1)
    store = LineStore(engine, "seat/1")
    assert claim(store, now_us=10**9) == []
    batches.cancel("batch_1", "search", 5)
    assert claim(store) == []


def test_lines_without_an_answer_are_closed_with_one(engine, make, batches):
    make(3)
    store = LineStore(engine, "seat/1")
    (done,) = claim(store, 1)
    store.answer(done, b"good", ok=True)
    undone = store.undone("batch_1", 9)
    assert undone == [(2, "c2"), (3, "c3")]
    store.close("batch_1", [(1, b"x"), *((number, b"cut") for number, _ in undone)])
    assert list(store.answers("batch_1", ok=False)) == [b"cut", b"cut"]
    assert list(store.answers("batch_1", ok=True)) == [b"good"]
    found = batches.find("batch_1", "search")
    assert (found.completed, found.failed) == (1, 2)


def test_four_runners_at_once_share_without_doubling(engine, make):
    make(60)
    got: list[tuple[int, str]] = []

    def work(name: str) -> None:
        store = LineStore(engine, f"seat-{name}/1")
        while claims := claim(store, 4):
            got.extend(
                (each_claim.number, name)
                for each_claim in claims
                if store.answer(each_claim, name.encode(), ok=True)
            )

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(number for number, _ in got) == dict.fromkeys(range(1, 61), 1)


def test_without_the_fence_a_line_would_be_answered_twice(engine, make, batches, monkeypatch):
    """The negative control of `test_the_claim_of_the_dead_is_over_with_its_lease`."""
    monkeypatch.setattr(
        LineStore, "_mine", lambda _, item: batchlines._line(item.batch_id, item.number)
    )
    make(1)
    dead, living = LineStore(engine, "seat/1"), LineStore(engine, "other/2")
    (lost,) = claim(dead)
    (taken,) = claim(living, now_us=UNTIL_US)
    assert living.answer(taken, b"answer", ok=True)
    assert dead.answer(lost, b"late", ok=True)
    assert batches.find("batch_1", "search").completed == 2
