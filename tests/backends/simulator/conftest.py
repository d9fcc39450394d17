"""A simulated server on a free port of this loop, for the time of one test."""

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn

from backends.event_server import EventServer
from backends.simulator.journal import RequestJournal
from backends.simulator.running import bind
from backends.simulator.server import SimulatedEngineApp
from backends.simulator.shape import EngineShape
from backends.stepmodel import FittedStepModel


@asynccontextmanager
async def serving(application):
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(application, lifespan="on", log_level="critical")
    server = EventServer(config)
    task = asyncio.create_task(server._serve([listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event for it
        await asyncio.sleep(0.005)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        await task
        listener.close()


@pytest.fixture
def serve():
    """`async with serve(application) as client`."""
    return serving


@pytest.fixture
def shape():
    """An engine of 100 blocks of 16 tokens whose step takes about a millisecond."""
    step = FittedStepModel(a_s=1e-3, b_s=1e-5, c_s=1e-8, d_s=1e-6, t0_s=1e-3)
    return EngineShape(step=step, blocks=101, max_num_seqs=8, context_tokens=1024)


@pytest.fixture
def engine(shape):
    """The application of a simulated engine called `sim`."""
    return SimulatedEngineApp(shape, "sim", profile="test", journal=RequestJournal(), max_queued=8)
