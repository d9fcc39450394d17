"""An engine and its telemetry come back while many wait: let in as the engine can, and by weight.

Never more run than there are places, whoever waited; while several tenants wait, what they get is
as their weights are. The controls: without weights both get the same, and where no promise limits
it everybody who waited is let in at once.
"""

import asyncio
import time

import pytest

from gateway.table_layout import HEALTHS, EngineCell

PLACES, LATE = 4, 1  # of whom one may wait for a place within the promise
WAITING = 32  # of each team
TOKENS = 60
SERVED = 24  # of whom the shares are looked at: both still wait
WEIGHTS = {"gold": 3.0, "plain": 1.0}
QUEUED = {"name": "queued", "otherwise": "queue", "queue_ms": 60_000}
LIMITED = {**QUEUED, "slo": {"ttft_ms": 100}}


@pytest.fixture
def herd(run_stack, make_proxy, request):
    """(host, the proxy before its engine), under the policy of the parameter."""
    proxy, policy = make_proxy(0), getattr(request, "param", LIMITED)

    def adjust(found, _ports) -> None:
        found["pools"]["main"]["engine"]["max_num_seqs"] = PLACES
        found["policies"] = [policy]
        found["queue"] = {"weights": WEIGHTS}

    with run_stack(adjust=adjust, through={"engine": proxy}) as stack:
        for team in WEIGHTS:
            assert stack.chat("own", stack.key(team, team=team).token).status_code == 200
        proxy.seen.clear()
        yield stack, proxy


def away(stack) -> None:
    """The engine is down, as the telemetry said that ended then."""

    async def end() -> None:
        stack._telemetry.cancel()
        await asyncio.gather(stack._telemetry, return_exceptions=True)
        for row in range(len(stack.runtime.engines)):
            stack.board.publish(row, {EngineCell.HEALTH: float(HEALTHS.index("down"))})

    stack.call(end())


def waits(stack) -> int:
    return sum(len(queue.line) for queue in stack.app.hot._dispatcher.waiting._queues.values())


def rush(stack, proxy, crowd, patiently) -> tuple[int, dict[str, int], float]:
    """(most at the engine at once, of the first served by team, seconds until all were)."""
    away(stack)
    asked = {
        team: crowd.ask(
            stack.port, 400.0, WAITING / 400.0, stack.key(team).token,
            model="own", max_tokens=TOKENS,
        )
        for team in WEIGHTS
    }  # fmt: skip
    patiently(lambda: waits(stack) == WAITING * len(WEIGHTS))
    assert not proxy.seen
    begun_s, most = time.monotonic(), 0

    async def back() -> None:
        stack.follow()

    stack.call(back())
    every = [item for team in asked.values() for item in team]
    while not all(item.took_s for item in every):
        most = max(most, stack.promises()[0])
        assert time.monotonic() - begun_s < 60
        time.sleep(0.002)
    assert {item.status for item in every} == {200}
    took_s = time.monotonic() - begun_s
    order = sorted(
        (item.at_s + (item.first_s or 0.0), team) for team, some in asked.items() for item in some
    )
    first = [team for _, team in order[:SERVED]]
    proxy.seen.clear()
    return int(most), {team: first.count(team) for team in WEIGHTS}, took_s


def test_who_waited_is_let_in_as_there_is_room_and_by_weight(
    herd, crowd, patiently, monkeypatch
) -> None:
    stack, proxy = herd
    most, shares, took_s = rush(stack, proxy, crowd, patiently)
    print(
        f"\n{2 * WAITING} waited: {most} at once at most; first {SERVED}: {shares}; {took_s:.1f} s"
    )
    assert most <= PLACES + LATE
    assert abs(shares["gold"] - 0.75 * SERVED) <= 3
    room = stack.app.hot._dispatcher.waiting
    monkeypatch.setattr(room, "_weights", {})
    room._queues.clear()  # lines that are made from now on have no weights
    _, alike, took_s = rush(stack, proxy, crowd, patiently)
    print(f"without weights: {alike}; {took_s:.1f} s")
    assert abs(alike["gold"] - 0.5 * SERVED) <= 3


@pytest.mark.long
@pytest.mark.parametrize("herd", [QUEUED], indirect=True)
def test_without_a_promise_all_are_let_in_at_once(herd, crowd, patiently) -> None:
    """The negative control of the herd."""
    most, _, _ = rush(*herd, crowd, patiently)
    print(f"\nwithout a promise: {most} at once")
    assert most > 4 * PLACES


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_shares_over_the_wire_while_several_wait(make_host, crowd, patiently, workers) -> None:
    """Each worker's line keeps the shares by itself, so those of the host are as near to them as
    the kernel spreads each team over the workers.
    """
    engine = {
        "kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "served_name": "llama",
        "replicas": 1, "port": 0, "max_num_seqs": PLACES,
    }  # fmt: skip
    gpu = {"type": "H200", "usd_per_hour": "3.50"}
    host = make_host(
        server={"port": 0, "workers": workers, "timeouts": {"drain_s": 8}},
        policies=[LIMITED],
        queue={"weights": WEIGHTS},
        pools={"main": {"engine": engine, "gpu": gpu}},
    )
    host.start()
    port, count = int(host.url.rpartition(":")[2]), 120
    asked = {
        team: crowd.ask(
            port, 300.0, count / 300.0, host.key(team, team=team), model="own", max_tokens=TOKENS
        )
        for team in WEIGHTS
    }
    every = [item for some in asked.values() for item in some]
    patiently(lambda: all(len(some) == count for some in asked.values()))
    every = [item for some in asked.values() for item in some]
    patiently(lambda: all(item.took_s for item in every), 90)
    assert {item.status for item in every} == {200}
    order = sorted(
        (item.at_s + (item.first_s or 0.0), team) for team, some in asked.items() for item in some
    )
    first = [team for _, team in order[20:120]]  # while both wait
    gold = first.count("gold") / len(first)
    print(f"\n{workers} workers: {gold:.2f} of a hundred served are gold's, 0.75 is its share")
    assert abs(gold - 0.75) <= (0.05 if workers == 1 else 0.15)
