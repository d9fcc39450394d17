"""Shares at overload, in tokens: by weight, whatever the sizes; nobody pays for who is silent."""

import random
from collections import Counter, deque

import pytest

from router.fairshare import FairQueue, QueuedRequest

WEIGHTS = {"gold": 3.0, "tin": 1.0}


def waiter(tenant, tokens, due_s=0.0, needs_s=0.0):
    return QueuedRequest(tenant, tokens, due_s, needs_s, None)


class Fifo:
    """The control: whoever came first."""

    def __init__(self):
        self.waiting = deque()

    def add(self, item):
        self.waiting.append(item)

    def heads(self):
        return list(self.waiting)[:1]

    def serve(self, item):
        self.waiting.remove(item)


def served(line, demand, seconds=200, rate=1000.0):
    """Tokens by tenant of an engine that is always behind: `demand` tokens/s by tenant."""
    rng, found, room = random.Random(5), Counter(), 0.0
    owed = dict.fromkeys(demand, 0.0)
    for second in range(seconds):
        for tenant, (tokens_s, size) in demand.items():
            owed[tenant] += tokens_s
            while owed[tenant] > 0:
                tokens = rng.uniform(0.5, 1.5) * size
                owed[tenant] -= tokens
                line.add(waiter(tenant, tokens, due_s=second))
        room += rate
        while room > 0 and line.heads():
            head = line.heads()[0]
            line.serve(head)
            found[head.tenant] += head.tokens
            room -= head.tokens
    return found


@pytest.mark.parametrize("sizes", [(50.0, 50.0), (200.0, 20.0), (20.0, 200.0)])
def test_two_tenants_at_overload_get_tokens_by_weight(sizes):
    demand = {"gold": (2000.0, sizes[0]), "tin": (2000.0, sizes[1])}
    found = served(FairQueue(10**6, WEIGHTS), demand)
    assert found["gold"] / found["tin"] == pytest.approx(3.0, rel=0.05)


def test_who_came_first_alone_would_give_them_the_same():
    """The control: shares follow demand, not weights."""
    found = served(Fifo(), {"gold": (2000.0, 50.0), "tin": (2000.0, 50.0)})
    assert found["gold"] / found["tin"] == pytest.approx(1.0, rel=0.05)


def test_a_silent_tenant_costs_nothing_and_gathers_nothing():
    line = FairQueue(10**6, {**WEIGHTS, "silent": 100.0})
    alone = served(line, {"tin": (2000.0, 50.0)})
    assert alone["tin"] == pytest.approx(200 * 1000.0, rel=0.01)
    joined = FairQueue(10**6, {"late": 1.0, "early": 1.0})
    for _ in range(100):
        joined.add(waiter("early", 10.0))
    for _ in range(50):
        joined.serve(joined.heads()[0])
    for _ in range(100):
        joined.add(waiter("late", 10.0))
    turns = []
    for _ in range(20):
        head = joined.heads()[0]
        joined.serve(head)
        turns.append(head.tenant)
    assert 9 <= turns.count("late") <= 11, "nothing is made up for the time of silence"


def test_a_tenant_that_asks_for_less_than_its_share_has_all_of_it():
    found = served(FairQueue(10**6, WEIGHTS), {"gold": (100.0, 20.0), "tin": (2000.0, 20.0)})
    assert found["gold"] == pytest.approx(200 * 100.0, rel=0.02)
    assert found["gold"] + found["tin"] == pytest.approx(200 * 1000.0, rel=0.01)


def test_within_a_tenant_the_least_slack_goes_first():
    line = FairQueue(9, {})
    relaxed, urgent = waiter("a", 1, due_s=9.0), waiter("a", 1, due_s=5.0)
    long = waiter("a", 1, due_s=8.0, needs_s=6.0)
    for item in (relaxed, urgent, long):
        assert line.add(item)
    order = []
    while len(line):
        order.append(line.heads()[0])
        line.serve(order[-1])
    assert order == [long, urgent, relaxed]


def test_places_are_bounded_and_who_leaves_makes_room():
    line = FairQueue(2, {})
    first, second = waiter("a", 5), waiter("b", 7)
    assert line.add(first)
    assert line.add(second)
    assert not line.add(waiter("a", 1))
    line.remove(first)
    line.remove(first)
    assert (len(line), line.everybody()) == (1, [second])
    assert line.add(waiter("c", 1))
    for item in line.everybody():
        line.remove(item)
    assert not len(line)
    assert not line._tenants


def test_what_is_ahead_counts_the_own_and_what_others_get_meanwhile():
    line = FairQueue(99, WEIGHTS)
    mine = [waiter("tin", 10.0, due_s=s) for s in (1, 2, 3)]
    for item in (*mine, *(waiter("gold", 10.0) for _ in range(20))):
        line.add(item)
    assert line.ahead(mine[0]) == 0.0
    assert line.ahead(mine[2]) == 20.0 + 60.0
