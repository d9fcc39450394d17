"""The server wakes for its end and once a second for the date, and for nothing else."""

import asyncio
import threading

import pytest
import uvicorn

from backends import event_server
from backends.event_server import EventServer
from backends.simulator.running import bind


class CountingServer(EventServer):
    """`looks`: how often it asked whether it is to end."""

    looks = 0

    async def on_tick(self, counter: int) -> bool:
        self.looks += 1
        if getattr(self.lifespan, "error_occurred", False):
            return True
        return await super().on_tick(counter)


class Application:
    """Its lifespan lasts until `fail` is set, and then breaks."""

    def __init__(self) -> None:
        self.fail = asyncio.Event()

    async def __call__(self, scope, receive, send) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await self.fail.wait()
        raise RuntimeError("what runs beside the requests has failed")


@pytest.fixture
def server(monkeypatch) -> CountingServer:
    monkeypatch.setattr(event_server, "DATE_S", 3600.0)
    application = Application()
    made = CountingServer(uvicorn.Config(application, lifespan="auto", log_level="critical"))
    made.application = application
    return made


async def started(server: CountingServer) -> asyncio.Task[None]:
    task = asyncio.create_task(server._serve([bind("127.0.0.1", 0)]))
    while not server.looks:  # noqa: ASYNC110  (uvicorn sets no event)
        await asyncio.sleep(0)
    return task


async def test_it_is_told_to_end_and_does_not_look_before(server) -> None:
    """Uvicorn's own looks ten times a second."""
    task = await started(server)
    await asyncio.sleep(0.3)
    assert server.looks == 1
    ends = threading.Thread(target=setattr, args=(server, "should_exit", True))
    ends.start()
    server.application.fail.set()
    async with asyncio.timeout(20):
        await task
    ends.join()
    assert server.should_exit


async def test_who_is_idle_is_hung_up_on_without_a_pause(server, monkeypatch) -> None:
    """Uvicorn's own sleeps for a tenth of a second, also where nobody is connected."""
    slept: list[float] = []
    sleep = asyncio.sleep

    async def sleep_and_note(pause_s: float) -> None:
        slept.append(pause_s)
        await sleep(pause_s)

    task = await started(server)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not server.server_state.connections:
        await sleep(0.001)
    monkeypatch.setattr(event_server.asyncio, "sleep", sleep_and_note)
    server.should_exit = True
    server.application.fail.set()
    async with asyncio.timeout(20):
        assert await reader.read() == b""
        await task
    writer.close()
    assert sum(slept) < 0.1


@pytest.mark.parametrize("grace_s", [None, 1])
async def test_who_is_served_is_waited_for_as_long_as_the_end_may_take(server, grace_s) -> None:
    """Without a bound: until it has its answer. With one it is cancelled, and not waited for."""
    server.config.timeout_graceful_shutdown = grace_s
    task = await started(server)
    answered = asyncio.Event()
    served = asyncio.create_task(answered.wait())
    server.server_state.tasks.add(served)
    served.add_done_callback(server.server_state.tasks.discard)
    server.application.fail.set()
    server.should_exit = True
    if grace_s is None:
        await asyncio.sleep(0.2)
        assert not task.done()
        answered.set()
    async with asyncio.timeout(20):
        await task
        await asyncio.wait([served])
    assert served.cancelled() is (grace_s is not None)


async def test_the_end_of_the_lifespan_is_seen_at_once(server) -> None:
    task = await started(server)
    server.application.fail.set()
    async with asyncio.timeout(20):
        await task
    assert (server.looks, server.should_exit) == (2, False)


async def test_an_end_before_the_start_ends_it(server) -> None:
    server.should_exit = True
    task = asyncio.create_task(server._serve([bind("127.0.0.1", 0)]))
    server.application.fail.set()
    async with asyncio.timeout(20):
        await task


async def test_the_date_is_renewed(server, monkeypatch) -> None:
    monkeypatch.setattr(event_server, "DATE_S", 0.001)
    task = await started(server)
    while server.looks < 3:  # noqa: ASYNC110  (see above)
        await asyncio.sleep(0.001)
    assert [name for name, _ in server.server_state.default_headers] == [b"date", b"server"]
    server.should_exit = True
    server.application.fail.set()
    await task


async def test_an_end_after_the_loop_is_no_error(server) -> None:
    server._loop = asyncio.new_event_loop()
    server._loop.close()
    server.should_exit = True
