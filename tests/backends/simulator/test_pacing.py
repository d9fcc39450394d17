"""The engine in real time: it wakes its readers, and sleeps when idle."""

import asyncio

import pytest

from backends.simulator.meters import Meters
from backends.simulator.pacing import Pacer
from backends.simulator.shape import TooLargeError


@pytest.fixture
async def pacer(shape):
    return Pacer(shape, Meters("sim"), asyncio.get_running_loop(), speed=10.0)


async def finish(pacer, **fields):
    event = asyncio.Event()
    seen = []
    ticket = pacer.submit(
        **{"hashes": (), **fields}, wake=lambda: (seen.append(ticket.generated), event.set())
    )
    while not ticket.done:
        await event.wait()
        event.clear()
    return ticket, seen


async def test_a_sequence_runs_to_its_end_token_by_token(pacer):
    ticket, seen = await finish(pacer, prompt_tokens=20, output_tokens=12)
    assert ticket.generated == 12
    assert set(range(1, 13)) <= set(seen)
    assert ticket.submitted_s <= ticket.admitted_s < ticket.first_s < ticket.last_s
    assert pacer.engine.unfinished == 0


async def test_a_repeated_prompt_reports_its_cached_tokens(pacer):
    hashes = (1, 2, 3)
    await finish(pacer, prompt_tokens=50, output_tokens=2, hashes=hashes)
    ticket, _ = await finish(pacer, prompt_tokens=50, output_tokens=2, hashes=hashes)
    assert ticket.cached_tokens == 48


async def test_an_abort_stops_the_work(shape):
    # At full speed a loop that is late by a second would find all tokens made.
    pacer = Pacer(shape, Meters("sim"), asyncio.get_running_loop(), speed=1.0)
    event = asyncio.Event()
    ticket = pacer.submit(prompt_tokens=20, output_tokens=900, hashes=(), wake=event.set)
    await event.wait()
    pacer.abort(ticket)
    kept = ticket.generated
    pacer.abort(ticket)
    assert ticket.done
    assert 1 <= kept < 900
    assert pacer.engine.unfinished == 0
    assert pacer.engine.kv_used_tokens == 0
    assert pacer.engine.totals.aborted == 1


async def test_what_can_never_fit_is_refused(pacer):
    with pytest.raises(TooLargeError):
        pacer.submit(prompt_tokens=2000, output_tokens=10, hashes=(), wake=lambda: None)
    assert pacer.engine.next_s() is None
