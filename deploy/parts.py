"""Real parts that the tests use: where each is found, and how a machine installs it.

`deploy/bootstrap.py` installs missing parts, and `tests/conftest.py` skips tests of missing parts
with the same install command. Only the standard library is used, because this module runs before
anything is installed. A part that this machine can install is installable: without it, CI fails. A
part that was searched for and is not available (for example, no torch is built for this Python) is
listed in UNAVAILABLE by `make test`, and its tests are skipped.
"""

import os
import shutil
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "build" / "sdk"
FOCUS = ROOT / "build" / "focus"
GUIDELLM = ROOT / "build" / "guidellm"
DOCS = ROOT / "build" / "docs"
TORCH_LINK = "engine-torch.pth"
SYSTEM_POSTGRES = Path("/usr/lib/postgresql")
UNAVAILABLE = "BREAKEVEN_PARTS_UNAVAILABLE"  # names, separated by spaces


@dataclass(frozen=True, slots=True)
class Part:
    """A real part. `find` returns the path for tests, or None; `install` is a command."""

    name: str
    what: str
    find: Callable[[], Path | None]
    install: str
    installable: Callable[[], bool]
    apt: tuple[str, ...] = ()
    late: bool = False  # only the long tier uses it, and installs it


def python_with(package: str, place: Path) -> Path | None:
    """Return the interpreter of an environment if the package is installed there."""
    python = place / "bin" / "python"
    installed = any(place.glob(f"lib/python3*/site-packages/{package}/__init__.py"))
    return python if installed and python.exists() else None


def on_path(*names: str) -> Path | None:
    """Return the first of these programs that is on PATH."""
    return next((Path(path) for name in names if (path := shutil.which(name))), None)


def find_engine() -> Path | None:
    return python_with("vllm", engine_folder())


def engine_folder() -> Path:
    return Path(os.environ.get("BREAKEVEN_ENGINE", str(ROOT / ".breakeven" / "engine")))


def find_postgres() -> Path | None:
    """Return PostgreSQL's program folder: newest system version, PATH or a bundled one."""
    system = sorted(
        SYSTEM_POSTGRES.glob("*/bin"),
        key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0,
        reverse=True,
    )
    program = on_path("initdb")
    places = [*system, *([program.resolve().parent] if program else []), *_bundled_servers()]
    return next(
        (
            place
            for place in places
            if (place / "initdb").exists() and (place / "postgres").exists()
        ),
        None,
    )


def _bundled_servers() -> list[Path]:
    """Return folders of servers that come in wheels, in `.venv` or in this Python's packages."""
    folders = {Path(sysconfig.get_path("purelib")), *ROOT.glob(".venv/lib/python3*/site-packages")}
    found = [
        place
        for folder in sorted(folders)
        for pattern in ("*pgserver/pginstall*/bin", "*pgserver/pginstall*/*/bin")
        for place in folder.glob(pattern)
    ]
    return sorted(found, reverse=True)


def find_chromium() -> Path | None:
    return on_path("chromium", "chromium-browser", "google-chrome")


def find_sdk(name: str, package: str = "openai") -> Callable[[], Path | None]:
    return lambda: python_with(package, SDK / name)


def find_node(name: str, *packages: str) -> Callable[[], Path | None]:
    def find() -> Path | None:
        folder = SDK / name
        wanted = (folder / "node_modules" / package / "package.json" for package in packages)
        return (
            folder
            if all(wanted_value.exists() for wanted_value in wanted) and shutil.which("node")
            else None
        )

    return find


def find_focus_validator() -> Path | None:
    return python_with("focus_validator", FOCUS)


def find_docs() -> Path | None:
    return python_with("mkdocs", DOCS)


def find_guidellm() -> Path | None:
    """Return the guidellm program if the engine's environment still has the torch it uses."""
    program = GUIDELLM / "bin" / "guidellm"
    torch = engine_torch()
    linked = any(GUIDELLM.glob(f"lib/python3*/site-packages/{TORCH_LINK}"))
    return program if program.exists() and linked and torch is not None else None


def compressor_folder() -> Path:
    return engine_folder().with_name("compressor")


def find_compressor() -> Path | None:
    """Return the folder of llm-compressor if the engine that it extends is installed."""
    there = (compressor_folder() / "llmcompressor").is_dir()
    return compressor_folder() if there and find_engine() is not None else None


def engine_torch() -> Path | None:
    """Return the folder in the engine's environment from which torch is imported."""
    found = engine_folder().glob("lib/python3*/site-packages/torch/__init__.py")
    return next((path.parent.parent for path in found), None)


def find_python_312() -> Path | None:
    """Return the python3.12 on PATH. A pyenv shim is resolved to the version behind it."""
    found = shutil.which("python3.12")
    if found is None:
        return None
    if Path(found).parent.name != "shims":
        return Path(found)
    return max(Path(found).parent.parent.glob("versions/3.12*/bin/python3.12"), default=None)


def find_promtool() -> Path | None:
    unpacked = ROOT / "build" / "promtool" / "usr" / "bin" / "promtool"
    return unpacked if unpacked.exists() else on_path("promtool")


def with_apt() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def is_always() -> bool:
    return True


def with_engine() -> bool:
    return "vllm" not in os.environ.get(UNAVAILABLE, "").split()


def with_python_312() -> bool:
    return find_python_312() is not None


def with_npm() -> bool:
    return (shutil.which("npm") is not None and shutil.which("node") is not None) or with_apt()


PARTS: tuple[Part, ...] = (
    Part(
        "vllm", "vLLM in its own environment", find_engine,
        "breakeven engine install", with_engine,
    ),
    Part(
        "postgres", "a PostgreSQL server", find_postgres,
        "sudo apt-get install postgresql (or without root: make parts)", is_always,
        apt=("postgresql",),
    ),
    Part(
        "chromium", "headless Chromium", find_chromium,
        "sudo apt-get install chromium", with_apt,
        apt=("chromium",),
    ),
    Part(
        "openai-2", "the openai Python SDK, major 2", find_sdk("openai2"),
        "make parts", is_always,
    ),
    Part(
        "openai-3", "the openai Python SDK, major 3", find_sdk("openai3"),
        "make parts", is_always,
    ),
    Part(
        "anthropic", "the anthropic Python SDK", find_sdk("anthropic", "anthropic"),
        "make parts", is_always,
    ),
    Part(
        "cohere", "the cohere Python SDK", find_sdk("cohere", "cohere"),
        "make parts", is_always,
    ),
    Part(
        "openai-node", "the openai and the AI SDK for Node", find_node("node", "openai", "ai"),
        "sudo apt-get install nodejs npm && make parts", with_npm,
        apt=("nodejs", "npm"),
    ),
    Part(
        "coding", "Claude Code and Codex",
        find_node("coding", "@anthropic-ai/claude-code", "@openai/codex"),
        "sudo apt-get install nodejs npm && make parts", with_npm,
        apt=("nodejs", "npm"),
    ),
    Part(
        "frameworks", "LangChain, LlamaIndex and other clients", find_sdk("frameworks", "agents"),
        "make parts", is_always,
    ),
    *(
        Part(
            f"loops-{name}", what, find_sdk(f"loops-{name}", package), "make parts", is_always,
            late=True,
        )
        for name, package, what in (
            ("agno", "agno", "Agno, CrewAI, Haystack, Mirascope, smolagents and Strands"),
            ("kernel", "semantic_kernel", "Agent Framework, Semantic Kernel and AutoGen"),
            ("guide", "guidance", "LiteLLM as a client, DSPy, gptme, guidance and others"),
            ("aider", "aider", "aider"),
            ("shell", "sgpt", "shell-gpt"),
        )
    ),
    *(
        Part(
            name, what, find_node(name, *packages),
            "sudo apt-get install nodejs npm && make parts", with_npm,
            apt=("nodejs", "npm"), late=True,
        )
        for name, packages, what in (
            ("loops-node", ("openai", "langchain"), "clients of Node at their newest majors"),
            ("agents", ("opencode-ai", "cline"), "coding agents, each at one version"),
        )
    ),
    Part(
        "schemathesis", "schemathesis", find_sdk("schemathesis", "schemathesis"),
        "make parts", is_always,
    ),
    Part(
        "helm", "Helm, as a library", find_sdk("helm", "helm_python"),
        "make parts", is_always,
    ),
    Part(
        "crds", "the schemas of what KEDA, the Prometheus operator and the Gateway API add",
        find_node("crds", "@kubernetes-models/keda", "@kubernetes-models/gateway-api"),
        "sudo apt-get install nodejs npm && make parts", with_npm,
        apt=("nodejs", "npm"),
    ),
    Part(
        "axe", "axe-core, which judges pages for people who do not see or click",
        find_node("axe", "axe-core"),
        "sudo apt-get install nodejs npm && make parts", with_npm,
        apt=("nodejs", "npm"),
    ),
    Part(
        "focus-validator", "FinOps' own validator of FOCUS files", find_focus_validator,
        "put a python3.12 on PATH && make parts", with_python_312,
    ),
    Part("docs", "MkDocs, which builds the site", find_docs, "make parts", is_always),
    Part(
        "guidellm", "guidellm, vLLM's load generator for any server", find_guidellm,
        "breakeven engine install && make parts", with_engine,
    ),
    Part(
        "compressor", "llm-compressor, laid over the engine's packages", find_compressor,
        "breakeven engine install --compressor", with_engine, late=True,
    ),
    Part(
        "strace", "strace, which counts flushes", lambda: on_path("strace"),
        "sudo apt-get install strace", with_apt,
        apt=("strace",),
    ),
    Part("promtool", "Prometheus's own checker", find_promtool, "make parts", with_apt),
)  # fmt: skip


def by_name(name: str) -> Part:
    return next(part for part in PARTS if part.name == name)
