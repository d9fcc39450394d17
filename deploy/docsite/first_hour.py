"""The first hour of a new user: `python -m deploy.docsite.first_hour`.

`make first-hour` runs it. The wheel is built and copied into an empty folder, and the blocks of the
tutorials run there in order, as typed. Two simulated engines stand for the engines at another
address. A table compares the commands and seconds of each page with its limits. The exit status is
1 if a limit is missed.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from deploy.docsite.blocks import FIRST_HOUR, RUN, DocBlock, blocks, commands
from deploy.docsite.page_shell import BlockError, PageShell
from deploy.docsite.staging import ROOT, SitePages

PLACE: Final = ROOT / "build" / "first-hour"
INSTALLING: Final = "tutorials/first-request.md"
GATEWAY: Final = 8080
ENGINES: Final = (8011, 8012)  # ports in the tutorial's configuration
READY_S: Final = 120.0
ASKS: Final = "curl "
BUSY: Final = "loading"  # what `engine status` prints until an engine is measured


class PageBar(NamedTuple):
    """A page and its limits up to the gateway's first answer: seconds and commands."""

    page: str
    seconds: float
    commands: int
    engines: tuple[int, ...] = ()


BARS: Final = (
    PageBar(INSTALLING, 180.0, 3),
    PageBar("tutorials/engines-and-api.md", 600.0, 12, ENGINES),
    PageBar("tutorials/apis-only.md", 600.0, 12),
    PageBar("how-to/leave-litellm.md", 900.0, 12),
)


class PageResult(NamedTuple):
    """Seconds and commands up to the first answer; `fault` says where the page failed."""

    bar: PageBar
    seconds: float
    commands: int
    fault: str = ""

    @property
    def holds(self) -> bool:
        """Return whether the page ran within its limits."""
        fast = self.seconds <= self.bar.seconds and self.commands <= self.bar.commands
        return fast and not self.fault


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder. Return its path."""
    words = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run([sys.executable, *words], check=True, cwd=ROOT, capture_output=True)
    return next(folder.glob("*.whl"))


def run_page(bar: PageBar, folder: Path, environ: Mapping[str, str]) -> PageResult:
    """Run the blocks of a page in a folder. The result states a fault."""
    text = SitePages().sources[bar.page].read_text(encoding="utf-8")
    own = list(blocks(bar.page, text))
    for block in own:
        if name := block.value("save"):
            (folder / name).write_text(block.text, encoding="utf-8")
    began, seconds, typed = time.monotonic(), 0.0, 0
    with ExitStack() as stack:
        for port in bar.engines:
            stack.enter_context(simulated_engine(port, environ))
        shell = stack.enter_context(PageShell(folder, environ))
        for block in own:
            if block.kind not in {RUN, *FIRST_HOUR}:
                continue
            typed += 0 if seconds else len(list(commands(block.text)))
            try:
                _run_block(block, shell)
            except BlockError as error:
                return PageResult(bar, time.monotonic() - began, typed, f"{block.place}: {error}")
            if ASKS in block.text and not seconds:
                seconds = time.monotonic() - began
    return PageResult(bar, seconds, typed)


def _run_block(block: DocBlock, shell: PageShell) -> None:
    if block.kind == "terminal":
        shell.start(block.text, gateway_is_ready, READY_S)
        return
    printed = shell.run(block.text)
    until = time.monotonic() + READY_S
    while "until-measured" in block.words and BUSY in printed:
        if time.monotonic() > until:
            raise BlockError(printed)
        time.sleep(1.0)
        printed = shell.run(block.text)


def gateway_is_ready() -> bool:
    """Return whether the gateway of the tutorials answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{GATEWAY}/readyz", timeout=2.0):
            return True
    except (OSError, urllib.error.URLError):
        return False


@contextmanager
def simulated_engine(port: int, environ: Mapping[str, str]) -> Iterator[None]:
    """Run a simulated engine of the installed wheel on a port."""
    words = [
        "python",
        "-m",
        "backends.simulator.server",
        "--model",
        "llama-8b",
        "--port",
        f"{port}",
    ]
    place = shutil.which("python", path=environ["PATH"]) or "python"
    with subprocess.Popen(
        [place, *words[1:]], env=dict(environ), cwd="/",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield
        finally:
            process.terminate()


def taken_ports() -> list[int]:
    """Return the ports of the tutorials on which another process listens."""
    taken = []
    for port in (GATEWAY, 8501, *ENGINES):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                taken.append(port)
    return taken


def main() -> int:
    """Run every page and print the table. Return exit status 2 if a port is taken."""
    if taken := taken_ports():
        print(f"these ports are taken, and the tutorials need them: {taken}", file=sys.stderr)
        return 2
    shutil.rmtree(PLACE, ignore_errors=True)
    wheel = build_wheel(PLACE / "dist")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    results = []
    for bar in BARS:
        folder = PLACE / Path(bar.page).stem
        folder.mkdir(parents=True)
        shutil.copy(wheel, folder)
        results.append(run_page(bar, folder, environ))
        if bar.page == INSTALLING:
            installed = folder / "venv" / "bin"
            environ = {**environ, "PATH": f"{installed}:{environ['PATH']}"}
        print(line_of(results[-1]), flush=True)
    return 0 if all(result.holds for result in results) else 1


def line_of(result: PageResult) -> str:
    """Return a page's line of the table."""
    bar = result.bar
    words = f"{bar.page}: {result.seconds:.0f} s (bar {bar.seconds:.0f}), "
    words += f"{result.commands} commands to the first answer (bar {bar.commands})"
    return f"{words}\n{result.fault}" if result.fault else words


if __name__ == "__main__":
    sys.exit(main())
