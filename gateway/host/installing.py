"""Installation of the engine in a separate process while the gateway runs.

It is a process because an installation must end with its parent: it is killed as a group, with its
package manager. `python -m gateway.host.installing DIRECTORY` prints a JSON line for each step.
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
    """Progress of a step; at the end `installed`, `reason` with `command`, or `fault`."""

    stage: str = ""
    message: str = ""
    fraction: float | None = None
    installed: str = ""
    fresh: bool = False
    reason: str = ""
    command: str = ""
    fault: str = ""


class InstallProcess:
    """A running installation. Afterwards `unavailable` says why this machine cannot have it."""

    def __init__(self, directory: Path, report: Callable[[InstallProgress], None]) -> None:
        self._directory = directory
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self.unavailable: InstallMessage | None = None
        self.fresh = False

    async def run(self) -> None:
        """Wait until installed or found unavailable. Raises `ConfigError` with any other fault."""
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
        """Kill the process group; an interrupted installation leaves the previous one intact."""
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
