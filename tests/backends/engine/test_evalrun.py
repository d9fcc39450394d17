"""A baseline and candidates compared over HTTP with models whose distributions are known."""

import json
import math
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from backends.engine import evalrun
from backends.engine.environment import Environment
from backends.engine.evalfigures import divergence, figures, verdict
from backends.engine.evalprompts import Checker, Prompt
from backends.engine.evalrun import EvalSubject, EvaluationRun, subject
from backends.engine.worklog import WorkLog

WORDS = 8  # tokens of an answer
PROMPTS = tuple(Prompt(f"k{place}", {"prompt": "x" * place}) for place in range(1, 7))


class Toy:
    """After token `t` comes `t + 1` with `chance`, else 0: of four tokens, by arithmetic."""

    def __init__(self, chance: float, *, vllm: bool) -> None:
        self.chance, self.vllm = chance, vllm
        self.asked = 0
        self.broken = False

    def after(self, token: int) -> dict[int, float]:
        likely = (token + 1) % 4
        rest = (1 - self.chance) / 3
        return {index: math.log(self.chance if index == likely else rest) for index in range(4)}

    def answer(self, path: str, body: dict) -> tuple[int, dict]:
        self.asked += 1
        if self.broken:
            return 401, {}
        if path.endswith("/completions") and "prompt" in body:
            if not self.vllm:
                return 400, {}
            ids = body["prompt"]
            listed: list = [None]
            for before in ids[:-1]:
                known = self.after(before)
                order = sorted(known, key=lambda name: -known[name])
                listed.append(
                    {str(name): {"logprob": known[name], "rank": order.index(name) + 1}
                     for name in known}
                )  # fmt: skip
            return 200, {"choices": [{"prompt_logprobs": listed}]}
        if "return_token_ids" in body and not self.vllm:
            return 400, {}
        start = len(body["messages"][0]["content"]) % 4
        made, token = [], start
        for _ in range(WORDS):
            known = self.after(token)
            token = max(known, key=lambda name: known[name])
            made.append((token, known))
        content = [
            {"token": str(item), "logprob": known[item],
             "top_logprobs": [{"token": str(other), "logprob": of} for other, of in known.items()]}
            for item, known in made
        ]  # fmt: skip
        choice = {"message": {"content": "".join(str(item) for item, _ in made)},
                  "logprobs": {"content": content}, "token_ids": [item for item, _ in made],
        }  # fmt: skip
        return 200, {"choices": [choice], "prompt_token_ids": [start]}


@pytest.fixture
def serve() -> Iterator[Callable[[Toy], str]]:
    servers: list[ThreadingHTTPServer] = []

    def start(toy: Toy) -> str:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.say(*toy.answer(self.path, body))

            def do_GET(self) -> None:
                self.say(200, {"data": [{"id": "toy"}]})

            def say(self, status: int, document: dict) -> None:
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def asked(tmp_path: Path) -> EvaluationRun:
    place = Environment(tmp_path / "engine")
    return EvaluationRun(PROMPTS, WORDS, 2, place, "cpu", tmp_path / "logs")


@pytest.mark.parametrize(("vllm", "way"), [(True, "forced"), (False, "freely")])
async def test_agreement_perplexity_and_kl_are_those_of_the_models(
    serve, asked, tmp_path, vllm, way
):
    toys = Toy(0.7, vllm=vllm), Toy(0.55, vllm=vllm), Toy(0.1, vllm=vllm)
    first, near, far = (
        subject(serve(toy), name) for name, toy in zip("abc", toys, strict=True)
    )  # fmt: skip
    log = WorkLog(tmp_path / "work.jsonl", {})
    said: list[str] = []
    assert await evalrun.evaluate(asked, (first, [near, far]), log, said.append) == {}
    assert said[0] == "a: starting"
    assert said[-1] == "c: 6 of 6 prompts"
    of, found_way, missing = evalrun.items(asked, (first, near), log)
    assert (found_way, missing) == (way, 0)
    found = figures(of)
    assert found.tokens == WORDS * len(PROMPTS)
    assert (found.disagreement.value, found.same) == (0, 1)
    assert found.perplexities == pytest.approx((1 / 0.7, 1 / 0.55), rel=1e-4)
    named = [{str(key): value for key, value in toy.after(0).items()} for toy in toys]
    assert found.kl is not None
    assert found.kl.value == pytest.approx(divergence(named[0], named[1]), rel=1e-3)
    assert verdict(found, 0.05).state == "fails", "its perplexity is a quarter above"
    worst = figures(evalrun.items(asked, (first, far), log)[0])
    assert worst.disagreement.value == 1, "it never says the likely token"
    assert worst.tokens == (found.tokens if vllm else len(PROMPTS))


async def test_what_is_kept_is_not_asked_again_and_faults_leave_a_prompt_open(
    serve, asked, tmp_path
):
    toys = Toy(0.7, vllm=True), Toy(0.7, vllm=True)
    first, second = (subject(serve(toy), name) for name, toy in zip("ab", toys, strict=True))
    toys[1].broken = True
    log = WorkLog(tmp_path / "work.jsonl", {})
    faults = await evalrun.evaluate(asked, (first, [second]), log, lambda _: None)
    assert "returned 401" in faults["b"]
    assert evalrun.items(asked, (first, second), log)[2] == len(PROMPTS)
    before = toys[0].asked
    toys[1].broken = False
    log = WorkLog(tmp_path / "work.jsonl", {})
    assert await evalrun.evaluate(asked, (first, [second]), log, lambda _: None) == {}
    assert toys[0].asked == before, "the baseline's answers are in the log"
    found, _, missing = evalrun.items(asked, (first, second), log)
    assert missing == 0
    assert verdict(figures(found), 0.25).state == "passes"
    again = toys[1].asked
    await evalrun.evaluate(asked, (first, [second]), log, lambda _: None)
    assert toys[1].asked == again


async def test_a_checker_scores_both(serve, asked, tmp_path):
    check = tmp_path / "check.py"
    check.write_text(
        "import json, sys\nprint(float('11' not in json.load(sys.stdin)['answer'][:2] * 6))"
    )
    made = EvaluationRun(
        PROMPTS[:2], WORDS, 2, asked.environment, "cpu", asked.logs, Checker.of(str(check))
    )
    toys = Toy(0.7, vllm=True), Toy(0.1, vllm=True)
    first, second = (subject(serve(toy), name) for name, toy in zip("ab", toys, strict=True))
    log = WorkLog(tmp_path / "work.jsonl", {})
    assert await evalrun.evaluate(made, (first, [second]), log, lambda _: None) == {}
    scores = figures(evalrun.items(made, (first, second), log)[0]).scores
    assert scores is not None
    assert scores[0] == 1


def test_subjects_are_addresses_or_models(tmp_path):
    (tmp_path / "m").mkdir()
    with pytest.raises(ValueError, match=r"has no config\.json"):
        subject(f"{tmp_path}/m")
    (tmp_path / "m" / "config.json").write_text("{}")
    made = subject(f"int8={tmp_path}/m --quantization fp8")
    assert (made.name, made.flags) == ("int8", ("--quantization", "fp8"))
    os.utime(tmp_path / "m" / "config.json", (1, 1))
    assert subject(f"int8={tmp_path}/m --quantization fp8") == made, "a checkout sets times anew"
    (tmp_path / "m" / "config.json").write_text('{"x": 1}')
    again = subject(f"int8={tmp_path}/m --quantization fp8")
    assert again.mark != made.mark, "another model in the same place is another subject"
    assert subject("http://a/v1#m=1") == EvalSubject("v1#m=1", "http://a/v1#m=1", "http://a/v1#m=1")
    assert subject("near=http://a/v1").name == "near"
    with pytest.raises(ValueError, match="flags apply only to a model directory"):
        subject("http://a/v1 --flag")
    with pytest.raises(ValueError, match="name a model directory, with flags"):
        subject("")
