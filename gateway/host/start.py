"""Steps of `breakeven up`.

The configuration of a first start is written by `gateway.config.starter`; the user's own is used
unchanged. Gateway and dashboard start first and do not wait for engines: the engine is looked for
and installed in a separate process. If none is available for this machine, the simulated engine is
used and labelled, and the command for the real one is printed; the listening socket stays open.
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import httpx

from backends.engine.environment import Environment, flavour_here
from backends.engine.install import InstallProgress
from backends.engine.profiles import hardware
from backends.engine.tinymodel import EMBEDDING, is_complete, make
from backends.engines import ENGINE_KINDS, SIMULATED, VLLM
from backends.plain_http import make_plain_client
from gateway.clock import Clock
from gateway.config.pool_seats import started_count
from gateway.config.settings import Settings, load
from gateway.config.starter import StarterPorts, configuration, find_providers
from gateway.config.state_errors import translate_state_errors
from gateway.config.statedir import hold
from gateway.errors import ConfigError
from gateway.host.banner import banner, keys_line
from gateway.host.children import Forks
from gateway.host.fork_client import listening
from gateway.host.http_wait import wait_until_answering
from gateway.host.installing import InstallProcess
from gateway.host.port_claims import PortClaims, free_ports
from gateway.host.serve import STOPPING, HostServer, on_hangup, on_signals
from gateway.host.stages import StartStages
from ledger.database import make_engine
from ledger.identity.keys import KeySpec, create_key, load_pepper

CONFIG_NAME = "up.yaml"
KEY_FILE = "dev-key"
DONE = "done"  # the last stage of an installation, whatever its result
EMBEDDER = "tiny-embed"
FIRST_TOKEN_PAUSE_S = 3.0


class StartSequence:
    def __init__(
        self,
        config: Path | None,
        *,
        keys: bool,
        ports: StarterPorts,
        say: Callable[[str], None],
        report: Callable[[InstallProgress], None],
        environ: Mapping[str, str],
    ) -> None:
        self._config = config
        self._use_keys = keys
        self._ports = ports
        self._say = say
        self._report = report
        self._environ = environ
        self._stages = StartStages(clock=time.monotonic, say=say)
        self._stages.resume(environ)
        self._stop = asyncio.Event()
        self._told = False

    async def run(self) -> None:
        """Run until SIGINT, SIGTERM or SIGHUP; all processes have ended on return."""
        on_signals(self._stop.set)
        on_hangup(self._stop.set)
        given = Settings() if self._config is None else load(self._config)
        hold(given).release()  # nothing is written or installed while a host runs here
        with PortClaims() as claims:
            ports = await free_ports(self._ports, claims, self._say)
            async with listening(os.environ) as forks:
                await self._run(given, ports, forks)

    async def _run(self, given: Settings, ports: StarterPorts, forks: Forks | None) -> None:
        state = given.state
        installing = InstallProcess(state.resolve() / "engine", self._report)
        work = asyncio.create_task(self._install(installing))
        kind: str | None = likely_engine(state)
        listener: socket.socket | None = None
        try:
            while kind is not None:
                path = self._config
                if path is None:
                    path = await asyncio.to_thread(self._configure, state, kind, ports)
                settings = load(path)
                models = partial(self._models, settings, installing, work)
                serving = HostServer(settings, path, self._say, models, listener, forks)
                kind = await self._serve(serving, settings, kind, installing, work)
                if kind is None:
                    on_signals(serving.hurry)
                    await serving.stop()
                else:
                    listener = await serving.stop_keeping_listener()
        finally:
            await installing.stop()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _serve(
        self,
        serving: HostServer,
        settings: Settings,
        kind: str,
        installing: InstallProcess,
        work: asyncio.Task[None],
    ) -> str | None:
        """Serve until stopped, or until another engine kind than `kind` must be used."""
        watch: asyncio.Task[None] | None = None
        try:
            with self._stages.stage("gateway and dashboard answer"):
                await serving.start()
                await wait_until_answering(settings, serving.address)
            if work.done() and (other := self._other(kind, installing, work)):
                return other
            with translate_state_errors(settings):
                token = development_key(settings, serving.runtime.ledger_url)
            self._say(
                banner(settings, serving.address, token, simulated=ENGINE_KINDS[kind].simulated)
            )
            self._say(keys_line(find_providers(self._environ), used=self._use_keys))
            watch = asyncio.create_task(self._first_token(settings, serving.address, token))
            stopped = asyncio.create_task(self._stop.wait())
            if not work.done():
                await asyncio.wait({stopped, work}, return_when=asyncio.FIRST_COMPLETED)
                if work.done() and (other := self._other(kind, installing, work)):
                    stopped.cancel()
                    return other
            await stopped
            self._say(STOPPING)
        except BaseException:
            await serving.stop()
            raise
        else:
            return None
        finally:
            if watch is not None:
                watch.cancel()

    def _other(self, kind: str, installing: InstallProcess, work: asyncio.Task[None]) -> str | None:
        """Return the other engine kind to use after the installation ended, or `None`."""
        if self._stop.is_set():
            return None
        try:
            work.result()
        except ConfigError as error:
            self._say("\n".join(error.faults))
            return None
        own, missing = self._config is not None, installing.unavailable
        if missing is not None and not self._told:
            self._told = True
            instead = (
                "The pools that need it stay without an engine."
                if own
                else "The SIMULATED engine takes its place."
            )
            self._say(
                f"No vLLM here: {missing.reason}\n"
                f"{instead} Add the real one with:\n"
                f"    {missing.command}"
            )
        fits = VLLM if missing is None else SIMULATED
        return None if own or fits == kind else fits

    async def _install(self, installing: InstallProcess) -> None:
        """Install the engine, unless the user's own configuration needs none."""
        if self._config is not None and not needs_engine(load(self._config)):
            return
        began = time.monotonic()
        try:
            await installing.run()
        finally:
            self._report(InstallProgress(DONE, "", 1.0))
        if installing.fresh:
            self._say(f"   engine installed beside it: {time.monotonic() - began:.1f} s")

    def _configure(self, state: Path, engine: str, ports: StarterPorts) -> Path:
        path = state / CONFIG_NAME
        gpu = hardware() if flavour_here() == "cuda" else None
        keys = find_providers(self._environ) if self._use_keys else ()
        text = configuration(state, engine=engine, gpu=gpu, keys=keys, ports=ports)
        with translate_state_errors(Settings(state_dir=str(state))):
            state.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return path

    async def _models(
        self, settings: Settings, installing: InstallProcess, installed: asyncio.Task[None]
    ) -> None:
        """Wait for the engine's environment; make the models if no configuration is given."""
        if self._config is None:
            directory = settings.state.resolve() / "models" / EMBEDDER
            if not is_complete(directory):
                self._say(f"   making the model {EMBEDDER}")
                await asyncio.to_thread(make, directory, seed=0, shape=EMBEDDING)
            self._say(
                "   The model `tiny` learned from Python's documentation: it answers in words,\n"
                f"   but is too small to be right. `{EMBEDDER}` has random weights. A real one:\n"
                "   make run CONFIG=your.yaml, where pools.NAME.engine.model is its directory."
            )
        await asyncio.shield(installed)
        if self._config is None and installing.unavailable is not None:
            await self._stop.wait()  # the host restarts with a configuration without vLLM

    async def _first_token(self, settings: Settings, address: tuple[str, int], token: str) -> None:
        """Send requests until an own engine answers; spilled ones appear on the dashboard."""
        model = next((name for name in settings.models if name == "tiny"), None)
        if model is None:
            return
        url = f"http://{address[0]}:{address[1]}/v1/chat/completions"
        body = {
            "model": model,
            "max_tokens": 8,
            "messages": [{"role": "user", "content": "Are you there?"}],
        }
        headers = {"authorization": f"Bearer {token}"}
        self._say(
            f"Until the engine answers, it is asked every {FIRST_TOKEN_PAUSE_S:g} s as team "
            "`development`: the spill that the dashboard shows."
        )
        began = time.monotonic()
        async with make_plain_client(timeout=30.0) as client:
            while True:
                try:
                    answer = await client.post(url, json=body, headers=headers)
                except httpx.HTTPError:
                    answer = None
                if answer is not None and answer.headers.get("x-breakeven-backend", "").startswith(
                    "pool:"
                ):
                    break
                await asyncio.sleep(FIRST_TOKEN_PAUSE_S)
        self._stages.done.append(("the engine's first token", time.monotonic() - began))
        self._say("\nThe engine answers. Where the time went:\n" + "\n".join(self._stages.table()))


def likely_engine(state: Path) -> str:
    """Return the engine kind of the last start, so that no probing delays the gateway."""
    if Environment(state.resolve() / "engine").stamp() is not None:
        return VLLM
    try:
        return load(state / CONFIG_NAME).pools["tiny"].engine.kind
    except (ConfigError, KeyError):
        return VLLM


def needs_engine(settings: Settings) -> bool:
    """Return whether any pool starts an engine that must be installed here."""
    return any(
        ENGINE_KINDS[pool.engine.kind].program is not None
        and started_count(pool)
        and pool.engine.environment is None
        for pool in settings.pools.values()
    )


def development_key(settings: Settings, ledger_url: str) -> str:
    """Return the key of earlier starts, or a new one; the file is readable by its owner only."""
    path = settings.state.resolve() / KEY_FILE
    if path.exists():
        return path.read_text(encoding="ascii").strip()
    pepper = load_pepper(settings.state.resolve())
    spec = KeySpec(name="development", team="development")
    engine = make_engine(ledger_url)
    with engine.begin() as connection:
        made = create_key(connection, spec, pepper=pepper, now_us=Clock().wall_us())
    engine.dispose()
    path.touch(mode=0o600)
    path.write_text(made.token, encoding="ascii")
    return made.token
