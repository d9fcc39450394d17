"""`breakeven serve` as a person starts it, for the GPU bench: key, waiting, ledger, Ctrl-C."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from gpuclients import Answer, Clients
from measure import tree
from ours import COMMAND, ROOT
from wire import free_ports

START_LIMIT_S = 400.0
MODEL = "long"


class Serve:
    """Started when made; `clients` can ask."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        folder.mkdir(parents=True)
        self.state = folder / "state"
        self._config = folder / "breakeven.yaml"
        document = {"state_dir": str(self.state), **document}
        self._config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        # Questions asked while it loads are another team's: lengths are learned for each team.
        self.keys = {team: self._key(team) for team in ("probe", "bench")}
        self._output = folder / "serve.out"
        self.began_s = time.monotonic()
        with self._output.open("wb") as out:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--config", str(self._config)], cwd=ROOT, stdout=out, stderr=out
            )
        self.base_url = self.until("an address", self._address, 60)

    def clients(self, team: str = "bench", *, chat: bool = False) -> Clients:
        return Clients(self.base_url, MODEL, self.keys[team], chat=chat)

    @property
    def engine_url(self) -> str:
        runtime = json.loads((self.state / "run" / "runtime.json").read_text())
        return str(runtime["engines"][0]["base_url"])

    def all_ready(self) -> bool:
        """Whether requests may go to every engine: later ones are up seconds after the first."""
        page = metrics_page(self.base_url)
        states = re.findall(r"^breakeven_engine_healthy\{[^}]*\} (\S+)", page, re.MULTILINE)
        return bool(states) and all(float(state) == 1.0 for state in states)

    def until(self, what: str, check: Callable[[], Any], limit_s: float) -> Any:
        """The first true answer; ends the bench with the logs when there is none."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                found = check()
            except (httpx.TransportError, OSError, EOFError, sqlite3.OperationalError):
                found = None
            if found:
                return found
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"bench-gpu: {what} did not come:\n{self.logs()}")
            time.sleep(0.1)

    def served(self, ask: Callable[[], Answer]) -> dict[str, Any]:
        """Asks until the own engine answers: who answered before it, and when each phase began."""
        early: dict[str, int] = {}
        phases: dict[str, float] = {}

        def own() -> bool:
            for name in re.findall(r"pool:\S+ is (\w+)", self._output.read_text()):
                phases.setdefault(name, round(time.monotonic() - self.began_s, 1))
            answer = ask()
            if not answer.own:
                early[answer.backend or str(answer.status)] = (
                    early.get(answer.backend or str(answer.status), 0) + 1
                )
                time.sleep(0.4)
            return answer.own

        self.until("an answer of the own engine", own, START_LIMIT_S)
        phases["first_answer"] = round(time.monotonic() - self.began_s, 1)
        return {"seconds_after_start": phases, "answers_before": early}

    def rows(self, query: str) -> list[dict[str, Any]]:
        books = sqlite3.connect(f"file:{self.state / 'ledger.db'}?mode=ro", uri=True)
        books.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in books.execute(query).fetchall()]
        finally:
            books.close()

    def settle(self) -> None:
        """Until every attempt has its settled row and no more come."""
        asked = "SELECT count(*) AS n, count(settled_us) AS settled FROM attempts"
        last: list[dict[str, Any]] = []

        def quiet() -> bool:
            nonlocal last
            before, last = last, self.rows(asked)
            time.sleep(0.5)
            return before == last and last[0]["n"] == last[0]["settled"]

        self.until("a settled row of each attempt", quiet, 60)

    def verify(self) -> str:
        return self.command("ledger", "verify").strip()

    def command(self, *words: str) -> str:
        return self._command(*words, "--config", str(self._config))

    def logs(self) -> str:
        files = [self._output, *sorted((self.state / "logs").glob("*.log"))]
        return "\n".join(
            f"--- {path.name}\n{path.read_text('utf-8', 'replace')[-3000:]}" for path in files
        )

    def interrupt(self) -> dict[str, Any]:
        """Ctrl-C: the exit status, seconds to the end, and what is left of the whole tree."""
        before = tree(self.process.pid)
        began_s = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            status: int | None = self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = None
        left = [pid for pid in before if _lives(pid)]
        return {
            "processes_before": len(before),
            "exit_status": status,
            "seconds": round(time.monotonic() - began_s, 2),
            "processes_left": len(left),
        }

    def _address(self) -> str | None:
        found = re.search(r"gateway on (http://\S+)", self._output.read_text(encoding="utf-8"))
        return found[1] if found else None

    def _key(self, team: str) -> str:
        words = ("--name", "bench", "--team", team, "--config", str(self._config), "--json")
        return str(json.loads(self._command("keys", "create", *words))["token"])

    def _command(self, *words: str) -> str:
        done = subprocess.run(
            [*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"bench-gpu: breakeven {words[0]} {words[1]}: {done.stderr}")
        return done.stdout


class Engines:
    """Replicas by the engine's interpreter, ended with whoever started them."""

    def __init__(
        self,
        environment: Path,
        model: Path,
        gpus: Sequence[int],
        logs: Path,
        flags: tuple[str, ...],
    ) -> None:
        words = [environment / "bin" / "python", Path(__file__).with_name("gpuengines.py"), model,
                 "--ports", *free_ports(len(gpus)), "--gpus", *gpus, "--logs", logs,
                 "--enable-prompt-tokens-details", *flags]  # fmt: skip
        self._process = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        lines = (json.loads(x) for x in self._process.stdout if x.startswith(('{"urls', '{"fail')))
        self.said: dict[str, Any] = next(lines, {"failed": "it ended"})

    @property
    def urls(self) -> list[str]:
        if "failed" in self.said:
            raise SystemExit(f"no engine came up: {self.said['failed']}")
        return list(self.said["urls"])

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=90)


class Provider:
    """The API beside the engine: a stand-in whose latency does not depend on load."""

    def __init__(self, tpot_ms: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "backends.simulator.provider", "--name", "standin",
             "--port", "0", "--tpot-ms", str(tpot_ms)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        found = re.search(r"http://\S+", self._process.stdout.readline())
        assert found is not None, "the stand-in said no address"
        self.base_url = found[0]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)


class Relay:
    """A process that hands bytes on and reads none of them: the least that a gateway can add."""

    def __init__(self, base_url: str) -> None:
        self._target = base_url

    def __enter__(self) -> Self:
        command = [sys.executable, str(Path(__file__).with_name("relay.py")), self._target]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)


def counters(base_url: str) -> dict[str, int]:
    """The engine's own account: counters without `vllm:` and `_total`, and what it works on."""
    page = metrics_page(base_url)
    found: dict[str, int] = {}
    wanted = r"^vllm:(\w+(?=_total)|num_requests_running)(?:_total)?(?:\{[^}]*\})? (\S+)$"
    for name, value in re.findall(wanted, page, re.MULTILINE):
        found[name] = found.get(name, 0) + int(float(value))
    return found


def metrics_page(base_url: str) -> str:
    url = base_url.removesuffix("/v1") + "/metrics"
    return httpx.get(url, trust_env=False, timeout=60).text


def _lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
