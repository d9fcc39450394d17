"""Real engines, started once a session and shared: vLLM on CPU with tiny random-weights models.

`tiny_engine` serves chat and completions, `tiny_embedder` embeddings; both are supervised by the
product's own supervisor in a loop of their own, so that tests of any kind can use them.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.engine import tinymodel
from backends.engine.environment import Environment
from backends.engine.flags import Launch
from backends.engine.supervisor import EngineSpec, Phase, Status, Supervisor

START_TIMEOUT_S = 400.0


@dataclass(frozen=True)
class RealEngine:
    base_url: str  # ends in /v1
    model: str
    directory: Path
    context_tokens: int


def make_spec(python: Path, folder: Path, *, embedding: bool = False, flags=()) -> EngineSpec:
    shape = tinymodel.EMBEDDING if embedding else tinymodel.Shape()
    model = folder / "model"
    tinymodel.make(model, shape=shape)
    launch = Launch(
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
        self.seen: list[Status] = []

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        self._supervisor = Supervisor(self._spec, self._publish)
        await self._supervisor.run()

    def _publish(self, status: Status) -> None:
        self.seen.append(status)
        # A second crash in a row means that it will not come up: let the test say so at once.
        if status.phase in (Phase.SERVING, Phase.STOPPED) or status.crashes_in_a_row > 1:
            self._ready.set()

    def __enter__(self) -> Status:
        self._thread.start()
        in_time = self._ready.wait(START_TIMEOUT_S)
        if not in_time or self.seen[-1].phase is not Phase.SERVING:
            self.__exit__()
            pytest.fail(f"the engine did not start: {self.seen}")
        return self.seen[-1]

    def __exit__(self, *_: object) -> None:
        if not self._loop.is_closed():
            future = asyncio.run_coroutine_threadsafe(self._supervisor.stop(), self._loop)
            future.result(60)
        self._thread.join(60)


@pytest.fixture(scope="session")
def engine_spec(
    engine_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., EngineSpec]:
    """Makes a spec with a model of its own: `engine_spec(embedding=False, flags=(...))`."""

    def make(**options: object) -> EngineSpec:
        return make_spec(engine_python, tmp_path_factory.mktemp("engine"), **options)

    return make


@pytest.fixture(scope="session")
def tiny_engine(engine_spec: Callable[..., EngineSpec]) -> Iterator[RealEngine]:
    spec = engine_spec(flags=("--max-model-len", "4096"))
    with EngineThread(spec) as status:
        yield RealEngine(status.base_url, "tiny", spec.launch.model, 4096)


@pytest.fixture(scope="session")
def tiny_embedder(engine_spec: Callable[..., EngineSpec]) -> Iterator[RealEngine]:
    spec = engine_spec(embedding=True, flags=("--max-model-len", "2048"))
    with EngineThread(spec) as status:
        yield RealEngine(status.base_url, "tiny-embedding", spec.launch.model, 2048)
