"""Real engines, started once and shared: vLLM on CPU with tiny random-weights models.

`tiny_engine` serves chat and completions, `tiny_embedder` embeddings; both are supervised by the
product's own supervisor in a loop of their own, so that tests of any kind can use them. They end
with the last test of this folder: idle ones would take CPU from all that follow.
`scarce_engine` has little KV cache and tells of it. `tiny_gateway` and `reading_gateway` stand in
front of the other two. `clients` ask them, directly or through a gateway.
"""

import asyncio
import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from backends.engine import tinymodel
from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch
from backends.engine.supervisor import EnginePhase, EngineSpec, EngineStatus, Supervisor

START_TIMEOUT_S = 400.0
READY_S = 300.0  # of patience with a gateway's first look at an engine
HERE = pytest.StashKey[ExitStack]()


@dataclass(frozen=True)
class RealEngine:
    base_url: str  # ends in /v1
    model: str
    directory: Path
    context_tokens: int
    kv_events: str = ""  # where it tells of its prefix cache, if it does


def make_spec(python: Path, folder: Path, *, embedding: bool = False, flags=()) -> EngineSpec:
    shape = tinymodel.EMBEDDING if embedding else tinymodel.TinyModelShape()
    model = folder / "model"
    tinymodel.make(model, shape=shape)
    launch = EngineLaunch(
        Environment(python.parent.parent),
        model,
        "tiny-embedding" if embedding else "tiny",
        kind="embedding" if embedding else "generate",
        flags=tuple(flags),
        drain_s=5.0,
    )
    return EngineSpec("tiny", launch, folder / "engine.log")


class EngineThread:
    """A supervisor in a thread with a loop of its own, for session-wide engines."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main)
        self.seen: list[EngineStatus] = []

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        self._supervisor = Supervisor(self._spec, self._publish)
        await self._supervisor.run()

    def _publish(self, status: EngineStatus) -> None:
        self.seen.append(status)
        # A second crash in a row means that it will not come up: let the test say so at once.
        if (
            status.phase in (EnginePhase.SERVING, EnginePhase.STOPPED)
            or status.crashes_in_a_row > 1
        ):
            self._ready.set()

    def __enter__(self) -> EngineStatus:
        self._thread.start()
        in_time = self._ready.wait(START_TIMEOUT_S)
        if not in_time or self.seen[-1].phase is not EnginePhase.SERVING:
            self.__exit__()
            pytest.fail(f"the engine did not start: {self.seen}")
        return self.seen[-1]

    def __exit__(self, *_: object) -> None:
        if not self._loop.is_closed():
            future = asyncio.run_coroutine_threadsafe(self._supervisor.stop(), self._loop)
            future.result(60)
        self._thread.join(60)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Asked for tests of this folder alone."""
    if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
        item.config.stash.get(HERE, ExitStack()).close()


@pytest.fixture(scope="session")
def here(pytestconfig: pytest.Config) -> Iterator[ExitStack]:
    """What ends with the last test of this folder."""
    with ExitStack() as stack:
        pytestconfig.stash[HERE] = stack
        yield stack


@pytest.fixture(scope="session")
def engine_spec(
    engine_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., EngineSpec]:
    """Makes a spec with a model of its own: `engine_spec(embedding=False, flags=(...))`."""

    def make(**options: object) -> EngineSpec:
        return make_spec(engine_python, tmp_path_factory.mktemp("engine"), **options)

    return make


@pytest.fixture(scope="session")
def tiny_engine(engine_spec: Callable[..., EngineSpec], here: ExitStack) -> RealEngine:
    spec = engine_spec(flags=("--max-model-len", "4096"))
    status = here.enter_context(EngineThread(spec))
    return RealEngine(status.base_url, "tiny", spec.launch.model, 4096)


@pytest.fixture(scope="session")
def tiny_embedder(engine_spec: Callable[..., EngineSpec], here: ExitStack) -> RealEngine:
    spec = engine_spec(embedding=True, flags=("--max-model-len", "2048"))
    status = here.enter_context(EngineThread(spec))
    return RealEngine(status.base_url, "tiny-embedding", spec.launch.model, 2048)


@pytest.fixture(scope="session")
def scarce_engine(engine_spec: Callable[..., EngineSpec], here: ExitStack) -> RealEngine:
    """23 usable blocks of KV cache, and events of each: a handful of long sequences fill it."""
    folder = here.enter_context(tempfile.TemporaryDirectory(prefix="kv"))  # of a short path
    address = f"ipc://{Path(folder) / 'kv'}"
    events = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": address}
    flags = ("--num-gpu-blocks-override", "24", "--max-model-len", "2048",
             "--kv-events-config", json.dumps(events))  # fmt: skip
    spec = engine_spec(flags=flags)
    status = here.enter_context(EngineThread(spec))
    return RealEngine(status.base_url, "tiny", spec.launch.model, 2048, address)


@pytest.fixture(scope="session")
def tiny_gateway(serve_on, tiny_engine, clients, question, here):
    """One gateway before `tiny_engine` and no other, past the measurements of its first sight."""
    gateway = serve_on(
        {
            "models": {"tiny": {"targets": ["pool:tiny"], "compare_with": ["openai/gpt-4o-mini"]}},
            "pools": {
                "tiny": {
                    "engine": {"endpoints": [tiny_engine.base_url], "served_name": "tiny"},
                    "gpu": {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1},
                }
            },
            "policies": [{"name": "patient", "slo": {"ttft_ms": 60_000}}],
        }
    )
    here.callback(gateway.stop)
    asking = clients(gateway.base_url, "tiny", gateway.key(team="first"))
    gateway.until(lambda: asyncio.run(asking.ask(question("hello", 4))).status == 200, READY_S)
    return gateway


@pytest.fixture(scope="session")
def reading_gateway(serve_on, tiny_embedder, here):
    """One gateway before the embedder, which embeds as the model `embed` and ranks as `rank`."""
    compared = {
        "embed": ["openai/text-embedding-3-small"],
        "rank": ["voyage/rerank-2.5", "cohere/rerank-v3.5"],
    }
    engine = {"endpoints": [tiny_embedder.base_url], "served_name": tiny_embedder.model}
    gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1}
    kinds = {"embed": ["embedding"], "rank": ["rerank"]}
    found = serve_on(
        {
            "models": {
                name: {"targets": [f"pool:{name}"], "compare_with": prices}
                for name, prices in compared.items()
            },
            "pools": {
                name: {"engine": {**engine, "kinds": served}, "gpu": gpu}
                for name, served in kinds.items()
            },
            "policies": [{"name": "reading", "slo": {"ttft_ms": 5000}}],
        }
    )
    here.callback(found.stop)
    found.headers = {"authorization": f"Bearer {found.key(team='search')}"}
    return found


# ---------------------------------------------------------------- clients of real engines


@dataclass(frozen=True)
class Question:
    prompt: str
    max_tokens: int
    stream: bool = True
    leaves_after: int | None = None  # bytes of the answer after which the client hangs up
    patience_s: float | None = None  # time after which it hangs up, whatever came


@dataclass(frozen=True)
class AnsweredRequest:
    """One request as its client saw it; times are monotonic seconds."""

    question: Question
    status: int
    backend: str  # who answered, by the gateway; empty without one
    request_id: str
    sent_s: float
    first_s: float
    end_s: float
    prompt_tokens: int  # by the last usage that came
    output_tokens: int
    left: bool

    @property
    def ttft_s(self) -> float:
        return self.first_s - self.sent_s

    def tokens_within(self, start_s: float, end_s: float) -> float:
        """Output tokens of this answer in a window: they come at an even pace."""
        shared = min(self.end_s, end_s) - max(self.first_s, start_s)
        return self.output_tokens * max(0.0, shared) / max(self.end_s - self.first_s, 1e-9)


class ReadAnswer:
    """An answer while it comes."""

    def __init__(self, question: Question, sent_s: float) -> None:
        self._question, self._sent_s = question, sent_s
        self._head, self._tail, self._first_s = "", b"", 0.0
        self.left = False

    async def read(self, reader: asyncio.StreamReader) -> None:
        self._head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        size, enough = 0, self._question.leaves_after
        while chunk := await reader.read(65536):
            size += len(chunk)
            self._tail = (self._tail + chunk)[-8192:]
            if not self._first_s and b"{" in chunk:
                self._first_s = time.monotonic()
            if enough is not None and size >= enough:
                self.left = True
                return

    def answered(self) -> AnsweredRequest:
        end_s = time.monotonic()
        return AnsweredRequest(
            question=self._question,
            status=int(self._head.split()[1]) if self._head else 0,
            backend=_header(self._head, "x-breakeven-backend"),
            request_id=_header(self._head, "x-request-id"),
            sent_s=self._sent_s,
            first_s=self._first_s or end_s,
            end_s=end_s,
            prompt_tokens=_last(self._tail, b"prompt_tokens"),
            output_tokens=_last(self._tail, b"completion_tokens"),
            left=self.left,
        )


class Clients:
    """Cheap streaming clients: what they cost is taken from the engine on the same cores."""

    def __init__(self, base_url: str, model: str, key: str = "none") -> None:
        address = re.fullmatch(r"http://([^:/]+):(\d+)(/v1)", base_url)
        self._host, self._port = address[1], int(address[2])
        self._model, self._key = model, key

    async def ask(self, question: Question) -> AnsweredRequest:
        body = {
            "model": self._model,
            "prompt": question.prompt,
            "max_tokens": question.max_tokens,
            "ignore_eos": True,
            "stream": question.stream,
        }
        if question.stream:
            body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
        text = json.dumps(body).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nhost: {self._host}\r\nconnection: close\r\n"
            f"authorization: Bearer {self._key}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(text)}\r\n\r\n"
        )
        answer = ReadAnswer(question, time.monotonic())
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(head.encode() + text)
            async with asyncio.timeout(question.patience_s):
                await answer.read(reader)
        except TimeoutError:
            answer.left = True
        finally:
            writer.close()
        return answer.answered()

    async def closed_loop(
        self, clients: int, seconds: float, questions: Iterator[Question], *, spread_s: float = 0.0
    ) -> list[AnsweredRequest]:
        """Each client asks again at once until the time is up; they begin `spread_s` apart."""
        end_s = time.monotonic() + seconds
        answers: list[AnsweredRequest] = []

        async def one(place: int) -> None:
            await asyncio.sleep(spread_s * place / clients)
            while time.monotonic() < end_s:
                answers.append(await self.ask(next(questions)))

        await asyncio.gather(*(one(place) for place in range(clients)))
        return answers


def _header(head: str, name: str) -> str:
    found = re.search(rf"^{name}: (.*?)\r", head, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else ""


def _last(tail: bytes, name: bytes) -> int:
    found = re.findall(rb'"%s":\s*(\d+)' % name, tail)
    return int(found[-1]) if found else 0


def vllm_counters(base_url: str) -> dict[str, int]:
    """The engine's own account: counters without `vllm:` and `_total`, and what it works on."""
    url = base_url.removesuffix("/v1") + "/metrics"
    page = httpx.get(url, trust_env=False, timeout=60).text
    found: dict[str, int] = {}
    wanted = r"^vllm:(\w+(?=_total)|num_requests_running)(?:_total)?(?:\{[^}]*\})? (\S+)$"
    for name, value in re.findall(wanted, page, re.MULTILINE):
        found[name] = found.get(name, 0) + int(float(value))
    return found


@pytest.fixture(scope="session")
def clients() -> type[Clients]:
    return Clients


@pytest.fixture(scope="session")
def question() -> type[Question]:
    return Question


@pytest.fixture(scope="session")
def counters() -> Callable[[str], dict[str, int]]:
    return vllm_counters
