"""A supervised engine is whatever program its spec names."""

import asyncio
from dataclasses import replace

from backends.engine.program import VLLM_PROGRAM, EngineProgram
from backends.engine.supervisor import EnginePhase, Supervisor


async def test_the_supervisor_starts_the_program_of_its_spec(fake_spec) -> None:
    """It gets the flags that its own installation has, and the port that it is served at."""
    started = []

    def command(launch, known, port):
        words = VLLM_PROGRAM.command(launch, known, port)
        started.append((known, port, words))
        return words

    def refuse(_said, _names):
        raise AssertionError("no start ended")

    def known_flags(environment):
        return VLLM_PROGRAM.known_flags(environment) | {"--only-here"}

    program = EngineProgram(known_flags, command, refuse)
    supervisor = Supervisor(replace(fake_spec(), program=program), lambda _status: None)
    running = asyncio.create_task(supervisor.run())
    try:
        status = await supervisor.wait_for(EnginePhase.SERVING, 20)
    finally:
        await asyncio.wait_for(supervisor.stop(), 20)
        await asyncio.gather(running, return_exceptions=True)
    [(known, port, words)] = started
    assert "--only-here" in known
    assert status.base_url == f"http://127.0.0.1:{port}/v1"
    assert words[words.index("--port") + 1] == str(port)
