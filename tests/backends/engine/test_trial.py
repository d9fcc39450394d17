"""One server for a measurement: served, measured, and nothing left; what did not serve says why."""

import sys
from pathlib import Path

import pytest

from backends.engine.benchfigures import BenchSlo
from backends.engine.benchload import PromptShape, closed_load
from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch
from backends.engine.trial import DidNotServe, ServerTrial, meter, serving


@pytest.fixture
def made(tmp_path: Path):
    """A trial of any command; its environment is never asked."""

    def make(*words: str, port: bool = True, limit_s: float = 60.0) -> ServerTrial:
        launch = EngineLaunch(Environment(tmp_path), tmp_path, "sim", drain_s=0.5)

        def command(number: int) -> list[str]:
            return [sys.executable, *words, *(["--port", str(number)] if port else [])]

        return ServerTrial(launch, command, tmp_path / "trial.log", limit_s)

    return make


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


SIMULATED = ("-m", "backends.simulator.server", "--profile", "h200-llama-3.1-8b-fp8",
             "--model", "sim")  # fmt: skip


async def test_a_server_is_measured_and_gone(made):
    shape = PromptShape(64, 4)
    async with serving(made(*SIMULATED)) as server:
        assert server.model == "sim"
        assert server.memory_bytes() > 1 << 20
        async with meter(server, shape, BenchSlo(tpot_s=60)) as of:
            run = await of.run(closed_load(2, 6, shape))
        pid = server.pid
        assert lives(pid)
    assert run.point.requests == 6
    assert run.point.failed == 0
    assert run.point.attainment == 1.0
    assert not lives(pid)


async def test_it_is_gone_when_the_measuring_fails(made):
    with pytest.raises(ZeroDivisionError):
        async with serving(made(*SIMULATED)) as server:
            1 / 0  # noqa: B018  (whatever goes wrong)
    assert not lives(server.pid)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-c", "raise RuntimeError('no memory left')"), "exited with 1.*no memory left"),
        (("-c", "import time; time.sleep(60)"), "not ready after 1 s"),
    ],
)
async def test_what_does_not_serve_says_why(made, words, said):
    with pytest.raises(DidNotServe, match=said):
        async with serving(made(*words, port=False, limit_s=1.0 if "sleep" in words[1] else 60)):
            pytest.fail("it served")
