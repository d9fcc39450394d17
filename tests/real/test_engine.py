"""Real vLLM under the product's supervision: what it serves, and that nothing is left over."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from backends.engine.guard import descendants
from backends.engine.probes import Workload
from backends.engine.profile import profile
from backends.engine.sockets import remove_sockets
from backends.metrics import parse

MESSAGES = [{"role": "user", "content": "Tell me about the weather in Paris."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "boolean"}, "text": {"type": "string"}},
    "required": ["answer", "text"],
    "additionalProperties": False,
}


@pytest.fixture
def ask(tiny_engine):
    def post(path: str, **body: object) -> dict:
        url = tiny_engine.base_url + path
        answer = httpx.post(url, json={"model": tiny_engine.model} | body, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return post


def metrics(engine) -> object:
    return parse(httpx.get(engine.base_url.removesuffix("/v1") + "/metrics", timeout=60).text)


@pytest.mark.real
def test_chat_ends_by_itself_within_a_few_tries(ask):
    answers = [ask("/chat/completions", messages=MESSAGES, max_tokens=500) for _ in range(3)]
    assert "stop" in {answer["choices"][0]["finish_reason"] for answer in answers}
    for answer in answers:
        usage = answer["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert answer["choices"][0]["message"]["content"].isprintable()


@pytest.mark.real
@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_tool_calls_are_whole_json_of_the_schema(ask, choice):
    answer = ask(
        "/chat/completions", messages=MESSAGES, tools=[WEATHER], tool_choice=choice, max_tokens=900
    )
    (call,) = answer["choices"][0]["message"]["tool_calls"][:1]
    arguments = json.loads(call["function"]["arguments"])
    assert call["function"]["name"] == "get_weather"
    assert set(arguments) == {"city", "unit"}


@pytest.mark.real
def test_a_json_schema_is_kept_and_ends(ask):
    schema = {"name": "a", "strict": True, "schema": ANSWER}
    answer = ask(
        "/chat/completions", messages=MESSAGES, max_tokens=900,
        response_format={"type": "json_schema", "json_schema": schema},
    )  # fmt: skip
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert set(json.loads(answer["choices"][0]["message"]["content"])) == {"answer", "text"}


@pytest.mark.real
def test_logprobs_and_n(ask):
    answer = ask("/completions", prompt="Hello", max_tokens=3, logprobs=2, n=2, ignore_eos=True)
    assert [len(choice["logprobs"]["tokens"]) for choice in answer["choices"]] == [3, 3]


@pytest.mark.real
def test_streams_carry_usage_in_every_chunk_and_metrics_count_the_same(ask, tiny_engine):
    before = metrics(tiny_engine)
    body = {
        "model": tiny_engine.model, "messages": MESSAGES, "max_tokens": 20, "ignore_eos": True,
        "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }  # fmt: skip
    url = tiny_engine.base_url + "/chat/completions"
    with httpx.stream("POST", url, json=body, timeout=120) as answer:
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    usages = [json.loads(line[6:])["usage"] for line in lines[:-1]]
    assert usages[-1]["completion_tokens"] == 20
    deadline = time.monotonic() + 20
    while metrics(tiny_engine).generation_tokens_total == before.generation_tokens_total:
        assert time.monotonic() < deadline
    after = metrics(tiny_engine)
    assert after.generation_tokens_total - before.generation_tokens_total == 20
    spent = after.prompt_tokens_total - before.prompt_tokens_total
    assert spent == usages[-1]["prompt_tokens"]
    assert after.kv_capacity_tokens > 100_000


@pytest.mark.real
def test_embeddings_tell_texts_apart(tiny_embedder):
    texts = ["hello there", "the price of tokens", "hello there"]
    body = {"model": tiny_embedder.model, "input": texts}
    answer = httpx.post(tiny_embedder.base_url + "/embeddings", json=body, timeout=120).json()
    element, other, same = (item["embedding"] for item in answer["data"])
    assert answer["usage"]["prompt_tokens"] > 0
    assert sum(x * y for x, y in zip(element, same, strict=True)) == pytest.approx(1.0, abs=0.01)
    assert sum(x * y for x, y in zip(element, other, strict=True)) < 0.9


@pytest.mark.real
async def test_a_step_model_is_fitted_to_the_live_engine(tiny_engine):
    async with httpx.AsyncClient() as client:
        made = await profile(
            Workload(tiny_engine.base_url, tiny_engine.model, parse), client=client
        )
    assert made.observations >= 10
    slow, slower = (
        made.step.step_s(sequences=n, context_tokens=500 * n, prefill_tokens=0) for n in (1, 16)
    )
    assert 0 < slow <= slower
    assert made.step.d_s > 0


# A supervisor in a process of its own that can be killed: prints each phase.
OWNER = """
import asyncio, sys
from pathlib import Path
from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch
from backends.engine.supervisor import EngineSpec, Supervisor, SupervisorLimits
launch = EngineLaunch(Environment(Path(sys.argv[1])), Path(sys.argv[2]), "tiny", drain_s=5.0,
                flags=("--max-model-len", "1024", "--num-gpu-blocks-override", "64"))
spec = EngineSpec("tiny", launch, Path(sys.argv[3]), limits=SupervisorLimits(backoff_first_s=0.1))
asyncio.run(Supervisor(spec, lambda status: print(status.phase, status.pid, flush=True)).run())
"""


def read_until(process: subprocess.Popen, phase: str) -> int:
    """The guard's id once the supervisor has printed `phase`."""
    for line in process.stdout:
        name, _, pid = line.strip().partition(" ")
        if name == phase:
            return int(pid) if pid.isdigit() else 0
    raise AssertionError(f"the supervisor ended before {phase}")


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.real
@pytest.mark.long  # two more engines' starts
def test_a_killed_engine_lives_again_and_a_killed_owner_leaves_no_process(engine_spec, tmp_path):
    log = tmp_path / "log"
    launch = engine_spec().launch
    words = [str(launch.environment.directory), str(launch.model), str(log)]
    root = str(Path(__file__).parents[2])
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    with owner:
        try:
            first = descendants(read_until(owner, "serving"))
            assert len(first) >= 2  # server, core; a worker where it has cores of its own
            met = log.with_name("log.sockets").readlink()
            assert any(path.is_socket() for path in met.iterdir())
            os.kill(first[0], signal.SIGKILL)
            read_until(owner, "backing_off")
            assert alive(first) == []  # before the next life begins
            assert not met.exists()
            second = descendants(guard := read_until(owner, "serving"))
            assert len(second) >= 2
        finally:
            owner.kill()
    deadline = time.monotonic() + 30
    while alive([guard, *second]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive([guard, *second]) == []
    remove_sockets(log)  # which the next life would do
