"""Waiting for room: turns, deadlines, hopeless ones, hang-ups and drains; nobody is left behind."""

import asyncio
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from gateway.request.limits.admission_queue import PACE_LEAST, AdmissionQueue, QueueFull
from gateway.telemetry.metrics.policies import PolicyMetrics

LONG_S = 30.0


class World:
    """An engine with so many places; plans have room while one is free."""

    def __init__(self, places=0, most=99, weights=None):
        self.free = places
        self.served = []
        self.registry = CollectorRegistry()
        self.clock = asyncio.get_running_loop().time
        metrics = PolicyMetrics(self.registry)
        now_s = lambda: self.clock()  # noqa: E731, PLW0108  (the clock may be replaced)
        self.room = AdmissionQueue(most, weights or {}, metrics, now_s)

    def plan(self, team="a"):
        return SimpleNamespace(
            decision=SimpleNamespace(order=("x",) if self.free > 0 else ()),
            route=SimpleNamespace(targets=[SimpleNamespace(pool="main")]),
            best_own=None,
            request=SimpleNamespace(prompt_tokens=10, n=1, output=SimpleNamespace(mean=0.0)),
            identity=SimpleNamespace(team_id=team),
        )

    async def ask(self, team="a", wait_s=LONG_S):
        due_s = self.clock() + wait_s
        plan = await self.room.wait(self.plan(team), due_s, lambda: self.plan(team))
        if plan.decision.order:
            self.free -= 1
            self.served.append(team)
        return plan

    def shown(self):
        return generate_latest(self.registry).decode()


async def lined_up(world, count):
    async with asyncio.timeout(10):
        while sum(len(queue.line) for queue in world.room._queues.values()) != count:  # noqa: ASYNC110  (it is looked at, nothing tells)
            await asyncio.sleep(0.001)


async def test_who_waits_is_served_when_there_is_room_and_one_at_a_time():
    world = World()
    tasks = [asyncio.create_task(world.ask()) for _ in range(3)]
    await lined_up(world, 3)
    assert world.room.has_line(world.plan())
    assert "breakeven_queue_length 3.0" in world.shown()
    world.free = 2
    await lined_up(world, 1)
    assert (world.free, world.served) == (0, ["a", "a"])
    world.free = 1
    await asyncio.gather(*tasks)
    assert not world.room.has_line(world.plan())
    assert 'breakeven_queue_wait_seconds_count{ended="served"} 3.0' in world.shown()
    assert "breakeven_queue_length 0.0" in world.shown()


async def test_turns_are_by_weight():
    world = World(weights={"gold": 3.0})
    tasks = [asyncio.create_task(world.ask(team)) for team in ["tin", "gold"] * 40]
    await lined_up(world, 80)
    for _ in range(40):
        world.free += 1
        waiting = 79 - len(world.served)
        await lined_up(world, waiting)
    assert abs(world.served.count("gold") - 30) <= 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_nobody_waits_beyond_the_deadline():
    world = World()
    plan = await world.ask(wait_s=0.05)
    assert plan.decision.order == ()
    assert 'breakeven_queue_wait_seconds_count{ended="late"} 1.0' in world.shown()
    assert not world.room._queues


async def test_who_leaves_is_taken_out_at_once_and_the_next_has_its_turn():
    world = World()
    first, second = (asyncio.create_task(world.ask()) for _ in range(2))
    await lined_up(world, 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert len(next(iter(world.room._queues.values())).line) == 1
    assert 'ended="gone"} 1.0' in world.shown()
    world.free = 1
    await second
    assert world.served == ["a"]


async def test_a_full_line_refuses_and_so_does_a_hopeless_one():
    world = World(most=1)
    waiting = asyncio.create_task(world.ask())
    await lined_up(world, 1)
    with pytest.raises(QueueFull) as full:
        await world.ask()
    assert not full.value.hopeless
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    slow, now = World(most=200), [0.0]
    slow.clock = lambda: now[0]
    tasks = [asyncio.create_task(slow.ask()) for _ in range(PACE_LEAST + 100)]
    await lined_up(slow, PACE_LEAST + 100)
    for number in range(PACE_LEAST):
        slow.free += 1
        await lined_up(slow, 99 + PACE_LEAST - number)
        now[0] += 0.5
    with pytest.raises(QueueFull) as hopeless:  # a hundred are before it, two a second are served
        await slow.ask(wait_s=LONG_S)
    assert hopeless.value.hopeless
    assert hopeless.value.wait_s > 5.0
    assert 'ended="refused"} 1.0' in slow.shown()
    slow.room.drain()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(answer, QueueFull) for answer in answers) == 100


async def test_a_drain_empties_it_and_keeps_it_empty():
    world = World()
    tasks = [asyncio.create_task(world.ask()) for _ in range(5)]
    await lined_up(world, 5)
    world.room.drain()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, QueueFull) for answer in answers)
    assert 'ended="drained"} 5.0' in world.shown()
    with pytest.raises(QueueFull):
        await world.ask()


async def test_who_has_no_room_lets_the_next_tenant_ask():
    """A request that is too large for what is free does not hold up another tenant's."""
    world = World()
    large = world.plan("large")
    never = asyncio.create_task(
        world.room.wait(large, asyncio.get_running_loop().time() + LONG_S, lambda: large)
    )
    await lined_up(world, 1)
    small = asyncio.create_task(world.ask("small"))
    await lined_up(world, 2)
    world.free = 1
    await small
    assert world.served == ["small"]
    never.cancel()
    await asyncio.gather(never, return_exceptions=True)
