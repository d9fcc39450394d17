"""What every test may use: databases, free ports, real parts, and a wall around the machine.

* `database_url` runs a test on SQLite and on PostgreSQL; `postgres_url` on PostgreSQL alone.
* `serve` runs `breakeven serve` as a person would: a process of its own, a key, its ledger;
  `run_command` any other command.
* `@pytest.mark.part("vllm")`, or a part's own fixture, marks a test that needs something real.
  Missing: a loud skip with the install line; on CI a part that can be installed is a failure.
  Being installed: the test waits for it.
* Python code in this process cannot connect anywhere but loopback.
The summary says which real parts were used and how long each group of tests took.
"""

import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import psycopg
import pytest
import sqlalchemy
import yaml

from deploy import collecting, coming_parts, lanes, once, onecase, parts, stack_alarm, warmstart
from deploy.quietports import find_quiet_port
from ledger.database import sqlite_url as url_of
from ledger.identity.keys import KeySpec, create_key, load_pepper

# A commit's result must not hang on luck: the suite draws the same examples each time, and
# `make test-long` draws others, and more of them.
EXAMPLES = {"deadline": None, "print_blob": True}
hypothesis.settings.register_profile("suite", derandomize=True, max_examples=50, **EXAMPLES)
hypothesis.settings.register_profile("long", max_examples=1_000, **EXAMPLES)
hypothesis.settings.load_profile("suite")

LOOPBACK_NAMES = frozenset({None, "", "localhost", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1"})
# What addresses begin with in a network of namespaces that its players made (`tests/hosts`).
OWN_NETWORK = os.environ.get("BREAKEVEN_OWN_NETWORK", "127.")
USED = pytest.StashKey[Counter]()
MISSING = pytest.StashKey[dict]()
SECONDS = pytest.StashKey[dict]()
COUNTED = "counted"
SLOWEST_FILES = 25  # that a run names
START_S = 150.0  # of patience with `serve` on a machine that does much else


# ---------------------------------------------------------------- the wall


def is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    near = str(name).startswith(("127.", OWN_NETWORK))
    return name in LOOPBACK_NAMES or near or name == socket.gethostname()


def forbid_world(event: str, arguments: tuple) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not is_loopback(host):
        raise RuntimeError(f"tests may reach loopback only, not {host!r}")


sys.addaudithook(forbid_world)


# ---------------------------------------------------------------- real parts


# A fixture that needs a part, however many fixtures stand between it and the test.
PART_OF_FIXTURE = {
    "chromium": "chromium",
    "compressor": "compressor",
    "engine_python": "vllm",
    "focus_validator": "focus-validator",
    "guidellm": "guidellm",
    "helm": "helm",
    "openai_2": "openai-2",
    "openai_3": "openai-3",
    "openai_node": "openai-node",
    "postgres_server": "postgres",
}


def require_part(config: pytest.Config, name: str) -> Path:
    """The part's path, once who installs it is through.

    Without it skip, or fail where it could have been installed.
    """
    coming_parts.wait_for(name)
    part = parts.by_name(name)
    path = part.find()
    if path is not None:
        return path
    reason = f"{part.what} is missing: {part.install}"
    config.stash[MISSING][name] = reason
    if os.environ.get("CI") == "true" and part.installable():
        pytest.fail(f"on CI a part that can be installed must be there: {reason}", pytrace=False)
    pytest.skip(reason)


def parts_of(item: pytest.Item) -> set[str]:
    """The real parts that a test works with, by its markers, fixtures and parameters."""
    fixtures = {name for name in getattr(item, "fixturenames", ()) if name in PART_OF_FIXTURE}
    names = {mark.args[0] for mark in item.iter_markers("part")}
    names |= {PART_OF_FIXTURE[name] for name in fixtures}
    callspec = getattr(item, "callspec", None)
    if callspec is not None and callspec.params.get("database_url") == "postgres":
        names.add("postgres")
    return names


@pytest.fixture(scope="session")
def engine_python(pytestconfig: pytest.Config) -> Path:
    """The interpreter of the environment that vLLM is installed in."""
    return require_part(pytestconfig, "vllm")


@pytest.fixture(scope="session")
def chromium(pytestconfig: pytest.Config) -> Path:
    return require_part(pytestconfig, "chromium")


@pytest.fixture(scope="session")
def compressor(pytestconfig: pytest.Config) -> Path:
    """The folder of llm-compressor."""
    return require_part(pytestconfig, "compressor")


@pytest.fixture(scope="session")
def focus_validator(pytestconfig: pytest.Config) -> Path:
    """The interpreter of the environment that FOCUS' validator is installed in."""
    return require_part(pytestconfig, "focus-validator")


@pytest.fixture(scope="session")
def guidellm(pytestconfig: pytest.Config) -> Path:
    return require_part(pytestconfig, "guidellm")


@pytest.fixture(scope="session")
def helm(pytestconfig: pytest.Config) -> Path:
    """The interpreter of an environment with Helm as a library."""
    return require_part(pytestconfig, "helm")


@pytest.fixture(scope="session")
def openai_2(pytestconfig: pytest.Config) -> Path:
    """The interpreter of an environment with the `openai` SDK 2.x and nothing of ours."""
    return require_part(pytestconfig, "openai-2")


@pytest.fixture(scope="session")
def openai_3(pytestconfig: pytest.Config) -> Path:
    return require_part(pytestconfig, "openai-3")


@pytest.fixture(scope="session")
def openai_node(pytestconfig: pytest.Config) -> Path:
    """A folder whose `node_modules` holds the `openai` SDK for Node: scripts go there."""
    return require_part(pytestconfig, "openai-node")


# ---------------------------------------------------------------- ports and databases


@pytest.fixture(scope="session")
def reset() -> Callable[[socket.socket], None]:
    """Hang up with RST instead of FIN."""

    def close(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return close


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without a GPU's tools whose pip may look in no index at all."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")


@pytest.fixture
def free_port() -> int:
    return find_quiet_port()


def database_user() -> str | None:
    """PostgreSQL refuses to run as root; anyone else runs it as themselves."""
    if os.geteuid() != 0:
        return None
    return "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"


def die_with_parent() -> None:
    """A test run that is killed must not leave a server behind (Linux: PR_SET_PDEATHSIG = 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


class PostgresServer:
    """One throw-away server on a free loopback port; `create` makes an empty database.

    `durable` as a ledger's server must be, at the price of its flushes. `also`: an address of this
    machine that it listens on, too, and the network from which that may be reached.
    """

    def __init__(
        self, binaries: Path, *, durable: bool = False, also: tuple[str, str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="breakeven-pg-"))
        user = database_user()
        self.options = {"user": user, "group": pwd.getpwnam(user).pw_gid} if user else {}
        if user:
            self.options["extra_groups"] = []
            shutil.chown(self.folder, user)
        self.port = find_quiet_port()
        data = self.folder / "data"
        initdb = [binaries / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-N"]
        subprocess.run(
            [*initdb, "-E", "UTF8", "--no-locale"],
            check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **self.options,
        )  # fmt: skip
        addresses = "127.0.0.1"
        if also is not None:
            addresses += f",{also[0]}"
            with (data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {also[1]} trust\n")
        lasting = "on" if durable else "off"
        settings = {
            "listen_addresses": addresses, "port": self.port, "fsync": lasting,
            "unix_socket_directories": self.folder, "max_connections": 200,
            "shared_buffers": "64MB", "full_page_writes": lasting, "synchronous_commit": lasting,
            "jit": "off", "autovacuum": "off" if lasting == "off" else "on",
        }  # fmt: skip
        flags = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        self.command = [binaries / "postgres", "-D", data, *flags]
        self.admin = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        self.count = 0
        self.log = (self.folder / "server.log").open("wb")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=self.log, stderr=self.log, **self.options,
            preexec_fn=die_with_parent,  # noqa: PLW1509  (no thread of ours holds a lock)
        )  # fmt: skip
        self.wait()

    def restart(self) -> None:
        """Open connections are ended; what the server holds in memory is gone."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=120)
        self.start()

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.admin, autocommit=True).close()
            except psycopg.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "server.log").read_text()
                    raise RuntimeError(f"PostgreSQL did not start: {error}\n{log}") from error
                time.sleep(0.02)
            else:
                return

    def create(self, name: str = "", template: str = "template1") -> str:
        self.count += 1
        name = name or f"test_{self.count}"
        with psycopg.connect(self.admin, autocommit=True) as connection:
            copied = "STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {copied}")
        return name

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def drop(self, name: str) -> None:
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def halt(self) -> None:
        """At once, as `pg_ctl stop -m immediate`: what was committed is found at the next start."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=30)

    def stop(self) -> None:
        self.halt()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    server = PostgresServer(require_part(pytestconfig, "postgres"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A SQLAlchemy URL of a fresh, empty PostgreSQL database."""
    name = postgres_server.create()
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A SQLAlchemy URL of a fresh, empty database: each test runs on SQLite and PostgreSQL."""
    return request.getfixturevalue(f"{request.param}_url")


# ---------------------------------------------------------------- the gateway as a process


class Gateway:
    """One `breakeven serve` with a state directory of its own, ready when it is made."""

    def __init__(self, folder: Path, config: dict, environ: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "breakeven.yaml"
        config = {"state_dir": str(self.state), "server": {"port": 0}, **config}
        self.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        self.output = folder / "serve.out"
        once.put_started_ledger(config.get("ledger", {}).get("url") or self.state / "ledger.db")
        with self.output.open("wb") as output:
            self.process = warmstart.start_program(
                ["serve", "--config", self.config], output=output.fileno(), folder=Path.cwd(),
                environ={**os.environ, **(environ or {})},
            )  # fmt: skip
        try:
            self.base_url = self.until(self._address, START_S)
            ready = self.root + "/readyz"
            self.until(lambda: httpx.get(ready, trust_env=False).is_success, START_S)
        except BaseException:
            self.stop()
            raise

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")

    def key(self, **spec: str) -> str:
        """A token of a fresh key; `team`, `org`, `user` as in `KeySpec`."""
        engine = sqlalchemy.create_engine(url_of(self.state / "ledger.db"))
        pepper = load_pepper(self.state)
        with engine.begin() as connection:
            now_us = time.time_ns() // 1000
            made = create_key(connection, KeySpec("test", **spec), pepper=pepper, now_us=now_us)
        engine.dispose()
        return made.token

    def rows(self, query: str, **values: object) -> list[dict]:
        """What the ledger says, read beside its writer."""
        engine = sqlalchemy.create_engine(url_of(self.state / "ledger.db"))
        with engine.connect() as connection:
            found = connection.execute(sqlalchemy.text(query), values).mappings()
            rows = [dict(row) for row in found]
        engine.dispose()
        return rows

    def until(self, probe: Callable[[], object], limit_s: float) -> object:
        """The first true answer of `probe`; everything `serve` logged when there is none."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                answer = probe()
            except httpx.TransportError:
                answer = None
            if answer:
                return answer
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"not within {limit_s} s:\n{self.logs()}", pytrace=False)
            time.sleep(0.05)

    def logs(self) -> str:
        """The last lines of every process."""
        files = [self.output, *sorted((self.state / "logs").glob("*.log"))]
        return "\n".join(
            f"--- {path.name}\n{path.read_text('utf-8', 'replace')[-1500:]}" for path in files
        )

    def stop(self) -> int:
        """Ctrl-C's way; the exit status."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its children end with it
            raise

    def _address(self) -> str | None:
        found = re.search(r"gateway on (http://\S+)", self.output.read_text(encoding="utf-8"))
        return found[1] if found else None


@contextmanager
def gateways(folders: pytest.TempPathFactory) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways: `start(config)`; whoever wants one to end earlier calls its `stop`."""
    with ExitStack() as running:

        def start(config: dict, environ: dict[str, str] | None = None) -> Gateway:
            gateway = Gateway(folders.mktemp("serve"), config, environ)
            running.callback(lambda: gateway.process.poll() is None and gateway.stop())
            return gateway

        yield start


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Gateway]]:
    """Gateways of one file: idle ones would take their share of every later test's time."""
    with gateways(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def serve_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Gateway]]:
    """Gateways that several files share."""
    with gateways(tmp_path_factory) as start:
        yield start


class Command:
    """`breakeven` with some words in a folder of its own, as typed there by a person."""

    def __init__(self, folder: Path, words: list[str], environ: dict[str, str]) -> None:
        self.folder = folder
        self.output = folder / "output"
        with self.output.open("wb") as output:
            self.process = warmstart.start_program(
                words, output=output.fileno(), folder=folder, environ={**os.environ, **environ}
            )

    @property
    def said(self) -> str:
        return self.output.read_text("utf-8", "replace")

    def until(self, pattern: str, limit_s: float = START_S) -> re.Match:
        """The first match in what it says; fails with everything said when there is none."""
        deadline = time.monotonic() + limit_s
        while True:
            ended = self.process.poll() is not None
            found = re.search(pattern, self.said)
            if found:
                return found
            if ended or time.monotonic() > deadline:
                pytest.fail(f"never said {pattern!r}:\n{self.said}", pytrace=False)
            time.sleep(0.05)

    def interrupt(self) -> int:
        """Ctrl-C, and the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its children end with it
            raise

    def left_behind(self) -> list[str]:
        """Processes that still name its folder or work in it."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                here = (entry / "cwd").readlink().is_relative_to(self.folder)
            except OSError:
                continue  # it ended meanwhile
            if words and (here or str(self.folder) in words):
                found.append(words)
        return found


@pytest.fixture
def run_command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts `breakeven`: `run_command("up", SOME_VARIABLE="value")`; ended with the test."""
    with ExitStack() as running:

        def start(*words: str, **environ: str) -> Command:
            command = Command(tmp_path, list(words), environ)
            running.callback(command.interrupt)
            return command

        yield start


# ---------------------------------------------------------------- markers and summary


def pytest_configure(config: pytest.Config) -> None:
    config.stash[USED] = Counter()
    config.stash[MISSING] = {}
    config.stash[SECONDS] = defaultdict(float)
    config.addinivalue_line("markers", "part(name): needs a real part, see deploy/parts.py")
    config.addinivalue_line("markers", "long: belongs to `make test-long`")
    config.addinivalue_line("markers", "quiet: needs the machine alone, see deploy/lanes.py")
    collecting.register(config)
    onecase.register(config)
    stack_alarm.register(config)
    once.register()
    config.add_cleanup(warmstart.programs().close)
    lanes.register(config)
    config.pluginmanager.register(_Failures(config))


class _Failures:
    """Tells a failure when it happens; the report on all of them is long in coming."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._plugins.get_plugin("terminalreporter")
        if report.failed and terminal is not None and not terminal.no_summary:
            terminal.write_line(f" failed in {report.when}: {report.nodeid}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("part"):
        require_part(item.config, mark.args[0])


def pytest_runtest_call(item: pytest.Item) -> None:
    """Set-up went well: the parts are there and in use."""
    item.config.stash[USED].update(parts_of(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.config.stash[SECONDS][item.nodeid.partition("::")[0]] += report.duration
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A lane tells the run what it counted."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        stash = session.config.stash
        told[COUNTED] = (dict(stash[USED]), stash[MISSING], dict(stash[SECONDS]))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    used, missing, seconds = getattr(node, "workeroutput", {}).get(COUNTED, ({}, {}, {}))
    stash = node.config.stash
    stash[USED].update(used)
    stash[MISSING].update(missing)
    for name, each in seconds.items():
        stash[SECONDS][name] += each


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if terminalreporter.no_summary:
        return
    write = terminalreporter.write_line
    terminalreporter.section("real parts")
    for part in parts.PARTS:
        used, missing = config.stash[USED][part.name], config.stash[MISSING].get(part.name)
        state = f"used by {used} tests" if used else "not asked for"
        if missing:
            state = f"SKIPPED: {missing}"
        write(f"{part.name:12} {state}")
    by_file, by_group = Counter(config.stash[SECONDS]), Counter()
    for name, seconds in by_file.items():
        by_group[Path(name).parts[1] if name.count("/") > 1 else "tests"] += seconds
    for title, counted, most in (("group", by_group, None), ("file", by_file, SLOWEST_FILES)):
        terminalreporter.section(f"seconds by {title}")
        for name, seconds in counted.most_common(most):
            write(f"{seconds:8.1f}  {name}")
