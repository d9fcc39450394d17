"""One gateway in front of simulated engines, and the official clients run against it once each."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy import parts

sys.path.insert(0, str(Path(__file__).parent))

from loop_config import KEY_VARIABLE, config_of
from loop_upstream import LoopUpstream

CLIENTS = Path(__file__).with_name("clients")
SDKS = ("openai-2", "openai-3", "openai-node")
PYTHONS = ("openai-2", "openai-3")
FRAMEWORKS = {  # what runs in which part, by name
    "langchain": "frameworks",
    "llamaindex": "frameworks",
    "agents": "frameworks",
    "llm": "frameworks",
    "ai": "openai-node",
}
COMMON = {"langchain", "ai"}
# What the programs of a part have in common, imported once: two to three seconds of CPU.
IMPORTS = {
    "openai-2": ("openai", "openai.resources", "openai.types.responses"),
    "openai-3": ("openai", "openai.resources", "openai.types.responses"),
    "anthropic": ("anthropic", "anthropic.resources", "anthropic.types.beta"),
}
PROGRAM_LIMIT_S = 120
GPU = {"type": "H200", "billing": "owned", "usd_per_hour": 3.5, "source": "for the test"}
# What the stand-in offers: it is asked for pictures by address, as an API outside would be.
FEATURES = ["tools", "json_schema", "images", "logprobs", "n", "reasoning", "media_urls"]


def engine(served_name: str, kinds: list[str]) -> dict:
    return {
        "kind": "simulated",
        "model": "h200-llama-3.1-8b-fp8",
        "replicas": 1,
        "port": 0,
        "served_name": served_name,
        "kinds": kinds,
    }


CONFIG = {
    "models": {
        "chat": {"targets": ["pool:chat", "standin/chat"], "compare_with": ["openai/gpt-4o-mini"]},
        "spilled": {"targets": ["standin/chat"]},
        "embed": {
            "targets": ["pool:embed"],
            "compare_with": ["openai/text-embedding-3-small"],
        },
        "rank": {"targets": ["ranks/rerank"]},
        "hear": {"targets": ["hears/gpt-4o-transcribe"]},
        "draw": {"targets": ["draws/dall-e-3"]},
        "draw-tokens": {"targets": ["draws-tokens/gpt-image-1"]},
        "speak": {"targets": ["speaks/tts-1"]},
        "speak-tokens": {"targets": ["speaks-tokens/gpt-4o-mini-tts"]},
        "omni-moderation-latest": {"targets": ["judges/omni-moderation-latest"]},
    },
    "pools": {
        "chat": {
            "engine": engine("simulated-chat", ["chat", "completion", "tokenize"]), "gpu": GPU,
        },
        "embed": {"engine": engine("simulated-embed", ["embedding", "score"]), "gpu": GPU},
    },
    "providers": {
        "standin": {
            "simulated": True, "start": True, "prices_as": "openai/gpt-4o-mini",
            "features": FEATURES,
        },
        "ranks": {
            "simulated": True, "start": True, "prices_as": "voyage/rerank-2.5", "kinds": ["rerank"],
        },
        "hears": {
            "simulated": True, "start": True, "prices_as": "openai/whisper-1",
            "kinds": ["transcription"],
        },
        **{
            name: {"simulated": True, "start": True, "prices_as": priced, "kinds": kinds.split()}
            for name, priced, kinds in (
                ("draws", "azure/dall-e-3", "image_generation image_edit"),
                ("draws-tokens", "openai/gpt-image-1", "image_generation image_edit"),
                ("speaks", "openai/tts-1", "speech"),
                ("speaks-tokens", "openai/gpt-4o-mini-tts", "speech"),
                ("judges", "openai/omni-moderation-latest", "moderation"),
            )
        },
    },
    "policies": [{"name": "interactive", "slo": {"ttft_ms": 5000}}],
    "budgets": [
        {"scope": f"team:poor-{name}", "usd": 0.000000001, "hard": True}
        for name in (*SDKS, "anthropic", *(f"responses-{name}" for name in PYTHONS),
                     *(f"kinds-{name}" for name in PYTHONS))
    ],
}  # fmt: skip


@pytest.fixture(scope="session")
def loop_upstream() -> Iterator[LoopUpstream]:
    with LoopUpstream() as server:
        yield server


@pytest.fixture(scope="session")
def gateway(serve_on, loop_upstream: LoopUpstream):
    loops = config_of(loop_upstream.port)
    joined = {key: {**CONFIG[key], **loops[key]} for key in ("models", "providers")}
    found = serve_on({**CONFIG, **joined}, {KEY_VARIABLE: "any"})
    found.engine_url = next(
        seat["base_url"].removesuffix("/v1")
        for seat in json.loads((found.state / "run" / "runtime.json").read_text())["engines"]
        if seat["pool"] == "chat"
    )
    return found


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.part(name)) for name in SDKS],
)
def sdk(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def program(sdk: str, see, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict]:
    """Runs the client program of one SDK: `program(base_url, key, poor_key, *checks)`."""
    folder = tmp_path_factory.mktemp(sdk)

    def run(base_url: str, key: str, poor_key: str, *checks: str) -> dict:
        environ = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": key, "POOR_KEY": poor_key}
        return see(sdk, "checks", folder, environ, *checks)

    return run


def seen_by(command: list[str], folder: Path, environ: dict[str, str]) -> dict:
    """What a client program tells; it sees nothing of this process's environment."""
    answer = subprocess.run(
        command, cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
        check=False, capture_output=True, timeout=PROGRAM_LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr.decode()[-4000:]
    return json.loads(answer.stdout)


class WarmClient:
    """One SDK's interpreter, with nothing of ours, that forks the programs of the tests."""

    def __init__(self, part: str) -> None:
        command = [str(parts.by_name(part).find()), "-I", str(CLIENTS / "warm_client.py")]
        self._process = subprocess.Popen(
            [*command, *IMPORTS[part]], env={"PATH": os.environ["PATH"]}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def see(self, program: str, folder: Path, environ: dict[str, str], *words: str) -> dict:
        """What a client program tells; it sees nothing of this process's environment."""
        with tempfile.TemporaryDirectory(dir=folder) as place:
            files = {name: f"{place}/{name}" for name in ("output", "errors")}
            for path in files.values():
                Path(path).touch()
            order = {
                "program": str(CLIENTS / program), "words": words, "folder": str(folder),
                "environ": {"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
                "input": os.devnull, **files,
            }  # fmt: skip
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            code = self._process.stdout.readline().strip()
            assert code == "0", Path(files["errors"]).read_text("utf-8", "replace")[-4000:]
            return json.loads(Path(files["output"]).read_text("utf-8"))

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(PROGRAM_LIMIT_S)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def see() -> Iterator[Callable[..., dict]]:
    """`see(part, program, folder, environ, *words)`: what a client program of a part tells."""
    clients: dict[str, WarmClient] = {}

    def ask(part: str, program: str, folder: Path, environ: dict, *words: str) -> dict:
        if part not in IMPORTS:
            command = node_command if part == "openai-node" else isolated_command
            return seen_by([*command(part, program, folder), *words], folder, environ)
        if part not in clients:
            clients[part] = WarmClient(part)
        return clients[part].see(f"{program}.py", folder, environ, *words)

    yield ask
    for client in clients.values():
        client.close()


def node_command(part: str, program: str, folder: Path) -> list[str]:
    """Node looks for packages beside the program."""
    copied = Path(shutil.copy(CLIENTS / f"{program}.mjs", folder))
    packages = folder / "node_modules"
    if not packages.exists():
        packages.symlink_to(parts.by_name(part).find() / "node_modules")
    return ["node", str(copied)]


def isolated_command(part: str, program: str, _: Path) -> list[str]:
    """The program under the SDK's own interpreter, with nothing of ours."""
    return [str(parts.by_name(part).find()), "-I", str(CLIENTS / f"{program}.py")]


@pytest.fixture(scope="session")
def told(gateway, sdk: str, program: Callable[..., dict]) -> dict:
    """What this SDK's program saw, check by check; `team` and `poor` are its client's teams."""
    team, poor = f"team-{sdk}", f"poor-{sdk}"
    found = program(gateway.base_url, gateway.key(team=team), gateway.key(team=poor))
    return {**found, "team": team, "poor": poor}


@pytest.fixture(scope="session", params=[pytest.param(None, marks=pytest.mark.part("anthropic"))])
def messages_told(gateway, see, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What Anthropic's SDK saw."""
    environ = {
        "ANTHROPIC_BASE_URL": gateway.base_url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": gateway.key(team="team-anthropic"),
        "POOR_KEY": gateway.key(team="poor-anthropic"),
    }
    folder = tmp_path_factory.mktemp("messages")
    return see("anthropic", "messages_checks", folder, environ)


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.part(name)) for name in PYTHONS],
)
def responses_told(request, gateway, see, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What OpenAI's SDK saw of the Responses API, by its major."""
    team = f"responses-{request.param}"
    environ = {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": gateway.key(team=f"team-{team}"),
        "POOR_KEY": gateway.key(team=f"poor-{team}"),
    }
    folder = tmp_path_factory.mktemp("responses")
    found = see(request.param, "responses_checks", folder, environ)
    return {**found, "team": f"team-{team}", "poor": f"poor-{team}"}


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.part(name)) for name in PYTHONS],
)
def uses_told(request, gateway, see, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What OpenAI's SDK saw of raw answers, helpers, pages and tasks, by its major."""
    team = f"uses-{request.param}"
    environ = {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": gateway.key(team=team),
    }
    folder = tmp_path_factory.mktemp("uses")
    found = see(request.param, "uses_checks", folder, environ)
    return {**found, "team": team}


def marks_of(framework: str) -> list[pytest.MarkDecorator]:
    """One framework of each language is asked at every commit."""
    marks = [pytest.mark.part(FRAMEWORKS[framework])]
    return marks if framework in COMMON else [*marks, pytest.mark.long]


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.part(name)) for name in PYTHONS],
)
def kinds_told(request, gateway, see, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What OpenAI's SDK saw of pictures, speech, moderations and Azure, by its major."""
    team = f"kinds-{request.param}"
    environ = {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": gateway.key(team=team),
        "POOR_KEY": gateway.key(team=f"poor-{team}"),
    }
    folder = tmp_path_factory.mktemp("kinds")
    found = see(request.param, "kinds_checks", folder, environ)
    return {**found, "team": team}


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=marks_of(name)) for name in FRAMEWORKS],
)
def framework_told(request, gateway, see, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What the program of one framework saw; `untold` are checks that say nothing of usage."""
    name = request.param
    key = gateway.key(team=f"team-{name}")
    environ = {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": key,
        "ANTHROPIC_BASE_URL": gateway.root,
        "ANTHROPIC_API_KEY": key,
        "UNTOLD_KEY": gateway.key(team=f"untold-{name}"),
    }
    folder = tmp_path_factory.mktemp(name)
    checks = see(FRAMEWORKS[name], f"{name}_checks", folder, environ)
    return {
        "name": name,
        "team": f"team-{name}",
        "versions": checks.pop("versions"),
        "checks": checks,
    }


@pytest.fixture(scope="session")
def batches_told(gateway, sdk: str, see, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What OpenAI's SDKs saw of files and batches."""
    folder, team = tmp_path_factory.mktemp("batches"), f"batches-{sdk}"
    environ = {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": gateway.key(team=team),
        "OTHER_KEY": gateway.key(team=f"other-{team}"),
    }
    return {**see(sdk, "batches_checks", folder, environ), "team": team}


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.part(name)) for name in PYTHONS],
)
def usage_program(request, gateway, see, tmp_path_factory: pytest.TempPathFactory):
    """Runs a part of the usage program of one major of OpenAI's SDK; and its client's team."""
    team, folder = f"usage-{request.param}", tmp_path_factory.mktemp("usage")
    environ = {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": gateway.key(team=team),
        "OPENAI_ADMIN_KEY": gateway.key(team="finance", scopes=("usage:all",)),
        "TEAM": team,
    }
    return lambda word: see(request.param, "usage_checks", folder, environ, word), team
