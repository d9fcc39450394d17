"""Sampling: compared in idle moments, within its cap, judged by its class, and nothing is kept."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import httpx
import msgspec
import pytest

from gateway.config.settings import Settings
from gateway.telemetry.drift.drawing import DriftSample
from gateway.telemetry.drift.sampling import HOUR_S, LEAST, PLACES, DriftSampler
from ledger.fleet.driftnotes import DRIFT_FILE, read_drift

SECRET = "the launch is on Tuesday"


class Time:
    s = 100.0

    def now_s(self) -> float:
        return self.s

    def wall_us(self) -> int:
        return int(self.s * 1e6)


class Host:
    """Engines that have `busy` sequences."""

    busy = 0

    def snapshot(self, _: int) -> SimpleNamespace:
        state = SimpleNamespace(running=self.busy, waiting=0)
        return SimpleNamespace(in_flight=0, state=state)


def settings(**changes: object) -> Settings:
    rule = {"teams": ["search"], "model": "own", "baseline": "base", "key_env": "K", "window": 40}
    pool = {"engine": {}, "gpu": {"type": "CPU"}}
    return Settings.model_validate(
        {
            "models": {"own": {"targets": ["pool:tiny"]}, "base": {"targets": ["pool:bf16"]}},
            "pools": {"tiny": pool | {"sampling": rule | changes}, "bf16": pool},
        }
    )


@pytest.fixture
def sampler(tmp_path: Path) -> Callable[..., DriftSampler]:
    def made(**changes: object) -> DriftSampler:
        engines = [SimpleNamespace(pool="tiny"), SimpleNamespace(pool="bf16"),
                   SimpleNamespace(pool="other")]  # fmt: skip
        runtime = SimpleNamespace(engines=engines, run_dir=tmp_path)
        return DriftSampler(settings(**changes), runtime, Host(), "http://gateway/v1", Time())

    return made


def answers(word_of: Callable[[str, int], str], seen: list[tuple[str, str]] | None = None):
    """Ten tokens of each model; `word_of` says which, by model and place."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if seen is not None:
            seen.append((body["model"], request.headers["authorization"]))
        tokens = [word_of(body["model"], place) for place in range(10)]
        told = [
            {"token": token, "logprob": -0.1, "top_logprobs": [{"token": token, "logprob": -0.1}]}
            for token in tokens
        ]
        message = {"role": "assistant", "content": " ".join(tokens)}
        choice = {"message": message, "logprobs": {"content": told}}
        return httpx.Response(200, json={"choices": [choice]})

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def drawn(content: str = SECRET) -> bytes:
    messages = msgspec.json.encode([{"role": "user", "content": content}])
    return msgspec.json.encode(DriftSample("tiny", msgspec.Raw(messages)))


async def until(sampler: DriftSampler, client: httpx.AsyncClient, done: Callable[[], bool]) -> None:
    running = asyncio.create_task(sampler.run(client, {"tiny": "key-of-quality"}))
    async with asyncio.timeout(30):
        while not done():  # noqa: ASYNC110  (what is looked at has no event)
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def compare(sampler: DriftSampler, client: httpx.AsyncClient, count: int) -> None:
    item = sampler.watched["tiny"]
    for _ in range(count):
        sampler.receive_sample(drawn())
    await until(sampler, client, lambda: item.compared + item.failed == count)


async def test_a_healthy_engine_does_not_drift_and_a_changed_one_does(sampler, tmp_path: Path):
    seen: list[tuple[str, str]] = []
    healthy = sampler()
    await compare(healthy, answers(lambda _, place: f"w{place}", seen), LEAST)
    note = read_drift(tmp_path)["tiny"]
    assert (note.drifts, note.differ, note.compared) == (False, 0.0, LEAST)
    assert set(seen) == {("own", "Bearer key-of-quality"), ("base", "Bearer key-of-quality")}
    broken = sampler()
    await compare(broken, answers(lambda model, place: f"{model}{place}"), LEAST)
    note = read_drift(tmp_path)["tiny"]
    assert note.drifts
    assert note.low > note.limit == 0.05


async def test_a_high_risk_has_a_tighter_limit(sampler, tmp_path: Path):
    """Every eighth answer differs in one of its ten tokens: 1.3 %."""
    for risk, limit in (("low", 0.05), ("high", 0.01)):
        asked = 0

        def word(model: str, place: int) -> str:
            nonlocal asked
            asked += place == 0
            return "other" if model == "own" and place == 9 and asked % 3 == 0 else f"w{place}"

        this_sampler = sampler(risk=risk)
        await compare(this_sampler, answers(word), 36)
        note = read_drift(tmp_path)["tiny"]
        assert note.limit == limit
        assert note.drifts is (note.low > limit)
        assert note.drifts is (risk == "high")


async def test_nothing_is_asked_while_an_engine_works(sampler):
    seen: list[tuple[str, str]] = []
    this_sampler = sampler()
    this_sampler._host.busy = 1
    assert this_sampler.watched["tiny"].rows == (0, 1)  # its own, and its baseline's
    this_sampler.receive_sample(drawn())
    running = asyncio.create_task(
        this_sampler.run(answers(lambda _, place: "w", seen), {"tiny": "k"})
    )
    await asyncio.sleep(0.5)
    assert seen == []
    this_sampler._host.busy = 0  # the control: it waited for that alone
    async with asyncio.timeout(30):
        while not this_sampler.watched["tiny"].compared:  # noqa: ASYNC110  (it has no event)
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_pool_that_is_never_idle_holds_up_no_other(tmp_path: Path):
    """It had all questions wait for as long as one of its own may."""
    rule = {"teams": ["search"], "baseline": "base", "key_env": "K"}
    pool = {"engine": {}, "gpu": {"type": "CPU"}}
    two = Settings.model_validate(
        {
            "models": {name: {"targets": [f"pool:{name}"]} for name in ("busy", "idle", "base")},
            "pools": {
                name: pool | {"sampling": rule | {"model": name}} for name in ("busy", "idle")
            }
            | {"base": pool},
        }
    )
    seats = [SimpleNamespace(pool=name) for name in ("busy", "idle", "base")]

    class OneBusy(Host):
        def snapshot(self, row: int) -> SimpleNamespace:
            self.busy = int(seats[row].pool == "busy")
            return super().snapshot(row)

    runtime = SimpleNamespace(engines=seats, run_dir=tmp_path)
    drift_sampler = DriftSampler(two, runtime, OneBusy(), "http://gateway/v1", Time())
    for name in ("busy", "idle"):
        drift_sampler.receive_sample(
            msgspec.json.encode(DriftSample(name, msgspec.Raw(b'[{"role": "user"}]')))
        )
    client = answers(lambda _, place: f"w{place}")
    running = asyncio.create_task(drift_sampler.run(client, {"busy": "k", "idle": "k"}))
    async with asyncio.timeout(30):
        while not drift_sampler.watched["idle"].compared:  # noqa: ASYNC110  (it has no event)
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert drift_sampler.watched["busy"].compared == 0


def test_the_cap_is_of_any_hour(sampler):
    item = sampler(per_hour=3).watched["tiny"]
    for at_s in (0.0, 10.0, 20.0):
        assert item.can_request(at_s)
        item.asked_s.append(at_s)
    assert not item.can_request(HOUR_S - 1)
    assert item.can_request(HOUR_S)


def test_what_waits_is_bounded_and_the_oldest_goes(sampler):
    this_sampler = sampler()
    for number in range(PLACES + 5):
        this_sampler.receive_sample(drawn(str(number)))
    watched = this_sampler.watched["tiny"]
    assert len(watched.waiting) == PLACES
    assert watched.let_go == 5
    assert b'"5"' in bytes(watched.waiting[0].messages)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


async def test_no_file_and_no_log_holds_a_prompt(sampler, tmp_path: Path, caplog):
    caplog.set_level(logging.DEBUG)
    this_sampler = sampler()
    this_sampler.receive_sample(b'{"pool": "tiny", "messages": ' + SECRET.encode())  # cut short
    this_sampler.receive_sample(msgspec.json.encode({"pool": "nobody", "messages": SECRET}))

    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, json={"error": {"message": request.content.decode()}})

    await compare(this_sampler, httpx.AsyncClient(transport=httpx.MockTransport(refuse)), 1)
    assert this_sampler.watched["tiny"].failed == 1
    await compare(sampler(), answers(lambda _, place: SECRET), LEAST)
    kept = texts(tmp_path)
    assert DRIFT_FILE in kept
    assert not [name for name, text in kept.items() if SECRET in text]
    assert "a drift sample failed" in caplog.text  # the control: there was something to tell
    assert SECRET not in caplog.text
