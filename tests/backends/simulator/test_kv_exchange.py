"""KV that one simulated engine hands to another: over HTTP, and in virtual time."""

import asyncio

import pytest

from backends.simulator.journal import RequestJournal
from backends.simulator.kv_exchange import transfer_members
from backends.simulator.model import SimulatedEngine
from backends.simulator.server import SimulatedEngineApp
from backends.simulator.shape import KvHandover, SequenceEventKind

CHAT = "/v1/chat/completions"
DECODE = {"do_remote_decode": True, "do_remote_prefill": False}


def chat(**fields):
    words = " ".join(f"word{number}" for number in range(200))
    return {"model": "sim", "messages": [{"role": "user", "content": words}], **fields}


def handing(shape, lease_s=5.0) -> SimulatedEngineApp:
    app = SimulatedEngineApp(shape, "sim", profile="test", journal=RequestJournal())
    app.hand_kv(lease_s)
    return app


async def until(check) -> None:
    async with asyncio.timeout(10):
        while not check():  # noqa: ASYNC110  (engines tell nobody what they free)
            await asyncio.sleep(0.005)


async def read(client) -> dict:
    answer = await client.post(CHAT, json=chat(max_tokens=1, kv_transfer_params=DECODE))
    assert answer.status_code == 200
    return answer.json()["kv_transfer_params"]


@pytest.mark.parametrize("stream", [False, True])
async def test_kv_is_kept_until_it_is_fetched(serve, shape, stream) -> None:
    reader, answerer = handing(shape), handing(shape)
    async with serve(reader) as first, serve(answerer) as second:
        params = await read(first)
        assert (await first.get("/_kv")).json() == {"kept": 1, "expired": 0}
        assert reader.pacer.engine.kv_used_tokens >= 200
        assert params["remote_host"] == "127.0.0.1"
        body = chat(max_tokens=5, stream=stream, kv_transfer_params=params)
        answer = await second.post(CHAT, json=body)
        assert answer.status_code == 200
        assert (await first.get("/_kv")).json()["kept"] == 0
        assert reader.pacer.engine.kv_used_tokens == answerer.pacer.engine.kv_used_tokens == 0
        again = await second.post(CHAT, json=body)
        assert "KV load failure" in again.text
        assert again.status_code == (200 if stream else 500)


async def test_what_nobody_fetches_is_freed_when_its_lease_ends(serve, shape) -> None:
    reader = handing(shape, lease_s=0.2)
    async with serve(reader) as client:
        await read(client)
        await until(lambda: reader.handing.expired)
        assert (await client.get("/_kv")).json() == {"kept": 0, "expired": 1}
        assert reader.pacer.engine.kv_used_tokens == 0


async def test_who_leaves_while_kv_moves_frees_it(serve, shape) -> None:
    reader, answerer = handing(shape, lease_s=60.0), handing(shape)
    async with serve(reader) as first, serve(answerer) as second:
        params = await read(first)
        answerer.handing.setup_s = 30.0
        body = chat(max_tokens=5, kv_transfer_params=params)
        asking = asyncio.create_task(second.post(CHAT, json=body))
        await until(lambda: reader.handing.asked)
        assert reader.handing.kept
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: not reader.handing.kept)
        assert reader.handing.expired == 0


async def test_an_engine_that_is_gone_fails_the_request(serve, shape) -> None:
    answerer = handing(shape)
    gone = {"do_remote_prefill": True, "remote_host": "127.0.0.1", "remote_port": 1,
            "remote_request_id": "x"}  # fmt: skip
    async with serve(answerer) as client:
        answer = await client.post(CHAT, json=chat(max_tokens=5, kv_transfer_params=gone))
        assert (answer.status_code, answerer.pacer.engine.kv_used_tokens) == (500, 0)


async def test_an_engine_without_roles_keeps_nothing(serve, engine) -> None:
    async with serve(engine) as client:
        answer = await client.post(CHAT, json=chat(max_tokens=1, kv_transfer_params=DECODE))
        assert "kv_transfer_params" not in answer.json()
        assert (await client.get("/_kv")).status_code == 404
        fetched = await client.post("/_kv/fetch", json={"request_id": "seq-1"})
        assert fetched.status_code == 404
        assert engine.pacer.engine.kv_used_tokens == 0


def test_in_virtual_time_kept_blocks_stay_and_moved_prompts_are_not_read(shape) -> None:
    reader, answerer = SimulatedEngine(shape), SimulatedEngine(shape)
    reader.submit("a", 0.0, prompt_tokens=320, output_tokens=1, kv=KvHandover(is_kept=True))
    reader.advance(10.0)
    assert (reader.kept, reader.unfinished, reader.kv_used_tokens) == (1, 0, 320)
    assert reader.free_kept("a")
    assert not reader.free_kept("a")
    assert reader.kv_used_tokens == 0
    took_s = {}
    for name, kv in (("moved", KvHandover(is_moved=True, moving_s=0.5)), ("read", None)):
        began_s = answerer.now_s
        answerer.submit(name, began_s, prompt_tokens=320, output_tokens=2, kv=kv)
        events = answerer.advance(began_s + 10.0)
        first = next(each for each in events if each.what is SequenceEventKind.FIRST)
        took_s[name] = first.at_s - began_s
    step = shape.step
    assert took_s["moved"] == pytest.approx(0.5 + step.t0_s + step.a_s + step.d_s, rel=0.02)
    assert took_s["read"] == pytest.approx(step.t0_s + step.a_s + 320 * step.d_s, rel=0.02)


def test_members_are_read_from_any_body() -> None:
    assert transfer_members(b"{}") is None
    assert transfer_members(b"nonsense") is None
    found = transfer_members(b'{"kv_transfer_params": {"do_remote_decode": true, "more": 1}}')
    assert (found.do_remote_decode, found.do_remote_prefill) == (True, False)


def test_what_waits_for_kept_blocks_starts_once_they_are_given_back(shape) -> None:
    """Red before: IndexError, as nothing ran whose next step could be worked out."""
    engine, whole = SimulatedEngine(shape), shape.kv_capacity_tokens
    kept = min(whole - 16, shape.context_tokens - 1)
    engine.submit("kept", 0.0, prompt_tokens=kept, output_tokens=1, kv=KvHandover(is_kept=True))
    engine.advance(10.0)
    engine.submit("waits", 10.0, prompt_tokens=whole - kept + 16, output_tokens=2)
    assert [each.id for each in engine.advance(20.0)] == []
    assert (engine.waiting, engine.running, engine.next_s()) == (1, 0, None)
    engine.free_kept("kept")
    assert engine.next_s() == 20.0
    first, *_, last = engine.advance(30.0)
    assert (first.what, first.at_s) == (SequenceEventKind.ADMITTED, 20.0)
    assert last.what is SequenceEventKind.FINISHED
    assert (engine.unfinished, engine.kv_used_tokens) == (0, 0)


def test_what_stands_behind_one_that_is_given_up_starts(shape) -> None:
    """Red before: nothing was to happen next until some kept blocks were given back."""
    engine, whole = SimulatedEngine(shape), shape.kv_capacity_tokens
    kept = shape.context_tokens - 1
    engine.submit("kept", 0.0, prompt_tokens=kept, output_tokens=1, kv=KvHandover(is_kept=True))
    engine.advance(10.0)
    engine.submit("large", 10.0, prompt_tokens=whole - kept + 16, output_tokens=2)
    engine.submit("small", 10.1, prompt_tokens=16, output_tokens=2)
    engine.advance(20.0)
    assert (engine.waiting, engine.next_s()) == (2, None)
    engine.abort("large")
    assert engine.next_s() == 20.0
    finished = [each.id for each in engine.advance(30.0) if each.what is SequenceEventKind.FINISHED]
    assert finished == ["small"]


async def test_in_real_time_too_it_starts_by_itself(serve, shape) -> None:
    reader = handing(shape, lease_s=1.0)

    def asked(word: str, **fields) -> dict:
        words = " ".join([word] * int(shape.kv_capacity_tokens * 0.4))
        return chat(messages=[{"role": "user", "content": words}], **fields)

    async with serve(reader) as client:
        reading = asked("here", max_tokens=1, kv_transfer_params=DECODE)
        assert (await client.post(CHAT, json=reading)).status_code == 200
        answer = await client.post(CHAT, json=asked("then", max_tokens=2))
        assert (answer.status_code, answer.json()["usage"]["completion_tokens"]) == (200, 2)
        assert reader.handing.expired == 1
