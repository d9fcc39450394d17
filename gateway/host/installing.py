"""The engine's installation as a process of its own beside the running gateway.

A process, because an installation must end with the parent: it is killed as a group, with the
package manager it runs. `python -m gateway.host.installing DIRECTORY` prints a JSON line a step.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from backends.engine import install as installation
from backends.engine.install import InstallProgress, InstallResult, NotAvailable
from gateway.config.environ import installer
from gateway.errors import ConfigError
from gateway.host.children import die_with_parent


class InstallMessage(msgspec.Struct, omit_defaults=True):
    """`progress` while it goes on; at the end `installed`, `reason` with `command`, or `fault`."""

    stage: str = ""
    message: str = ""
    fraction: float | None = None
    installed: str = ""
    fresh: bool = False
    reason: str = ""
    command: str = ""
    fault: str = ""


class InstallProcess:
    """At its end `unavailable` says why this machine cannot have the engine, if it cannot."""

    def __init__(self, directory: Path, report: Callable[[InstallProgress], None]) -> None:
        self._directory = directory
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self.unavailable: InstallMessage | None = None
        self.fresh = False

    async def run(self) -> None:
        """Until installed or found unavailable; raises `ConfigError` with the fault otherwise."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "gateway.host.installing", str(self._directory)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=installer(os.environ),
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        assert self._process.stdout is not None
        last = InstallMessage(stage="start")
        async for text in self._process.stdout:
            last = msgspec.json.decode(text, type=InstallMessage)
            if last.stage:
                self._report(InstallProgress(last.stage, last.message, last.fraction))
        code = await self._process.wait()
        if not (last.installed or last.reason):
            fault = last.fault or f"the installation ended with {code} at: {last.stage}"
            raise ConfigError([f"the engine cannot be installed: {fault}"])
        self.fresh = last.fresh
        if last.reason:
            self.unavailable = last

    async def stop(self) -> None:
        """Kill the group; an interrupted installation leaves the previous one alone."""
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def main() -> None:
    def write(line: InstallMessage) -> None:
        sys.stdout.write(json.dumps(msgspec.to_builtins(line)) + "\n")
        sys.stdout.flush()

    def report(news: InstallProgress) -> None:
        write(InstallMessage(stage=news.stage, message=news.message, fraction=news.fraction))

    try:
        result = installation.install(installation.InstallRequest(Path(sys.argv[1])), report)
    except installation.InstallError as error:
        write(InstallMessage(fault=str(error)))
        return
    if isinstance(result, NotAvailable):
        write(InstallMessage(reason=result.reason, command=result.command))
    elif isinstance(result, InstallResult):
        write(InstallMessage(installed=str(result.directory), fresh=result.fresh))


if __name__ == "__main__":
    main()
