"""The naive server on the engine's own Transformers: one at a time, or a batch that waits."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from backends.engine import tinymodel
from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch
from backends.engine.trial import ServerTrial, serving

SCRIPT = Path(__file__).parents[4] / "backends" / "engine" / "inside" / "naive.py"
pytestmark = [pytest.mark.part("vllm"), pytest.mark.long]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tinymodel.make(tmp_path_factory.mktemp("models") / "tiny").directory


@pytest.fixture
def naive(engine_python: Path, model: Path, tmp_path: Path):
    def make(*flags: str):
        launch = EngineLaunch(Environment(engine_python.parent.parent), model, "naive", drain_s=1)

        def words(port: int) -> list[str]:
            named = ["--model", str(model), "--port", str(port)]
            return [str(engine_python), "-P", str(SCRIPT), *named, *flags]

        return serving(ServerTrial(launch, words, tmp_path / "naive.log", 300))

    return make


async def ask(client: httpx.AsyncClient, prompt: str, tokens: int, **more: object) -> dict:
    body = {"model": "naive", "prompt": prompt, "max_tokens": tokens, **more}
    answer = await client.post("/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_stream_is_an_event_a_token_and_the_usage(naive):
    async with (
        naive() as server,
        httpx.AsyncClient(base_url=server.base_url, timeout=120, trust_env=False) as client,
    ):
        whole = await ask(client, "queue token cache", 8, ignore_eos=True)
        assert whole["usage"]["completion_tokens"] == 8
        body = {"prompt": "queue token cache", "max_tokens": 8, "ignore_eos": True, "stream": True}
        lines = (await client.post("/completions", json=body)).text.split("\n\n")
        assert lines[-2] == "data: [DONE]"
        events = [json.loads(line[6:]) for line in lines[:-2]]
        assert (
            "".join(event["choices"][0]["text"] for event in events[:-1])
            == (whole["choices"][0]["text"])
        ), "greedy: the same twice"
        assert len(events) == 9
        assert events[-1]["usage"] == whole["usage"]
        assert (await client.post("/completions", json={"prompt": ""})).status_code == 400


async def test_a_batch_answers_as_one_at_a_time_does(naive):
    """Padding on the left changes no answer, nor do layers that stand apart; each ends by its own
    count.
    """
    prompts = ["load queue", "token cache model price stream answer", "budget"]
    answers = []
    for flags in ((), ("--batch", "3", "--wait-s", "1"), ("--gpus", "2")):
        async with (
            naive(*flags, "--attention", "sdpa", "--dtype", "float32") as server,
            httpx.AsyncClient(base_url=server.base_url, timeout=120, trust_env=False) as client,
        ):
            asked = (
                ask(client, prompt, 3 + place, ignore_eos=True)
                for place, prompt in enumerate(prompts)
            )
            answers.append(await asyncio.gather(*asked))
    assert answers[0] == answers[1] == answers[2]
    assert [item["usage"]["completion_tokens"] for item in answers[1]] == [3, 4, 5]


@pytest.mark.parametrize("flags", [(), ("--gpus", "2"), ("--gpus", "2", "--compile", "default")])
async def test_a_shape_without_weights_is_served_with_random_ones(naive, model, tmp_path, flags):
    (model / "model.safetensors").rename(tmp_path / "kept")
    try:
        async with (
            naive(*flags) as server,
            httpx.AsyncClient(base_url=server.base_url, timeout=120, trust_env=False) as client,
        ):
            answer = await ask(client, "queue", 4, ignore_eos=True)
            assert answer["usage"]["completion_tokens"] == 4
    finally:
        (tmp_path / "kept").rename(model / "model.safetensors")
