"""Installation of the tests' real parts: Debian packages, SDK environments, the engine.

Debian packages need root. A part that cannot be installed here prints one line, and its tests are
skipped with a message. On CI they fail if the part could have been installed. Parts that are
present are left unchanged.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backends.engine import compressor
from backends.engine.environment import Environment
from backends.engine.packages import InstallError
from deploy import parts
from deploy.installer import (
    BootstrapError,
    Installer,
    find_installer,
    make_environment,
    run,
    unpack_debian,
)
from gateway.host.stages import StartStages

ROOT = Path(__file__).resolve().parent.parent
SDK_LOCKS = {
    "openai-2": "openai2",
    "openai-3": "openai3",
    "anthropic": "anthropic",
    "cohere": "cohere",
    "frameworks": "frameworks",
    "schemathesis": "schemathesis",
    "helm": "helm",
    "loops-agno": "loops-agno",
    "loops-kernel": "loops-kernel",
    "loops-guide": "loops-guide",
    "loops-aider": "loops-aider",
    "loops-shell": "loops-shell",
}
ENGINES = ("vllm", "guidellm")
NODE_LOCKS = {
    "openai-node": "node",
    "coding": "coding",
    "crds": "crds",
    "axe": "axe",
    "loops-node": "loops-node",
    "agents": "agents",
}


class Unavailable(Exception):
    """No source of packages on this machine has the part for this Python. This is not a fault."""


def missing_parts(names: Sequence[str], *, late: bool = True) -> list[parts.Part]:
    """Return the named parts (all, if none is named) that are not installed.

    Without `late`, parts that only the long tier uses are left out. Raises `BootstrapError` for an
    unknown name.
    """
    known = {part.name for part in parts.PARTS}
    if unknown := [name for name in names if name not in known]:
        raise BootstrapError(f"no part named {unknown[0]}: {', '.join(sorted(known))}")
    wanted = [part for part in parts.PARTS if not names or part.name in names]
    return [part for part in wanted if (late or not part.late) and part.find() is None]


def tell_nobody(name: str, *, is_to_be_had: bool) -> None:
    """Do nothing. Default of `tell` for callers that wait until all parts are installed."""


def install_parts(
    names: Sequence[str],
    python: Path,
    stages: StartStages,
    installer: Installer | None,
    *,
    tell: Callable[..., None] = tell_nobody,
) -> list[str]:
    """Install the named parts (all, if none is named) that are missing. Print failures.

    `tell(name, is_to_be_had=...)` is called when a part is done. Parts from different sources are
    installed in parallel, because most of the time is waiting for a source.

    Returns the names of parts that are not available for this machine and Python.
    """
    missing = missing_parts(names)
    for name in set(names) - {part.name for part in missing}:
        tell(name, is_to_be_had=True)  # installed since the caller looked
    if not missing:
        return []
    rows = [row for row in split_rows(missing) if row]
    with stages.stage(f"{len(missing)} parts"), ThreadPoolExecutor(len(rows)) as pool:
        installer = installer or find_installer(python)
        begun = [pool.submit(_install_row, row, python, stages, installer, tell) for row in rows]
        return [name for done in begun for name in done.result()]


def split_rows(missing: Sequence[parts.Part]) -> list[list[parts.Part]]:
    """Return rows of parts to install in sequence: engine, Debian and Node, others.

    guidellm needs the engine, and Node may come from Debian.
    """
    rows: list[list[parts.Part]] = [[], [], []]
    for part in missing:
        place = 0 if part.name in ENGINES else 1 if part.apt or part.name == "promtool" else 2
        rows[place].append(part)
    return rows


def _install_row(
    row: Sequence[parts.Part],
    python: Path,
    stages: StartStages,
    installer: Installer,
    tell: Callable[..., None],
) -> list[str]:
    packages = [name for part in row for name in part.apt if is_needed(name)]
    if packages and parts.with_apt():
        with stages.part_of_stage(f"Debian packages: {' '.join(packages)}"):
            print_failure(apt_install(packages))
    unavailable: list[str] = []
    for part in row:
        if part.find() is None:
            with stages.part_of_stage(part.what):
                try:
                    print_failure(install_part(part, python, installer))
                except Unavailable as error:
                    print_failure(str(error))
                    unavailable.append(part.name)
        tell(part.name, is_to_be_had=part.name not in unavailable)
    return unavailable


def is_needed(package: str) -> bool:
    """Return whether to install a Debian package: Node's only if Node is missing.

    Node from another source would conflict with Debian's.
    """
    return not (package in {"nodejs", "npm"} and shutil.which(package.removesuffix("js")))


def apt_install(packages: Sequence[str]) -> str:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    if run(install, environ):
        run(["apt-get", "update", "-q"], environ)
        return run(install, environ)
    return ""


def install_part(part: parts.Part, python: Path, installer: Installer) -> str:
    """Install one part. Return "" on success, otherwise the error text."""
    try:
        if part.name in SDK_LOCKS:
            folder = SDK_LOCKS[part.name]
            environment = make_environment(parts.SDK / folder / "bin" / "python")
            install_sdk(environment, ROOT / "tests" / "sdk", folder, installer)
        elif part.name == "postgres":
            installer.install(python, [ROOT / "tests" / "postgres.lock"])
        elif part.name in NODE_LOCKS:
            return install_node(NODE_LOCKS[part.name])
        elif part.name in APART:
            return APART[part.name](installer)
        elif part.name == "promtool":
            return unpack_debian("prometheus", ROOT / "build" / "promtool")
        elif part.name == "vllm":
            return install_engine(python)
    except BootstrapError as error:
        return str(error)
    return "" if part.find() else f"{part.what} is missing: {part.install}"


def install_sdk(environment: Path, locks: Path, folder: str, installer: Installer) -> None:
    """Install an SDK's packages: first wheels, then packages available only as source."""
    source = locks / f"{folder}-source.lock"
    if not source.exists():
        installer.install(environment, [locks / f"{folder}.lock"])
        return
    alone = ["--require-hashes", "--no-deps"]
    binary = ["--only-binary", ":all:"]
    installer.call(environment, [*alone, *binary, "-r", str(locks / f"{folder}.lock")])
    installer.call(environment, [*alone, "--no-build-isolation", "-r", str(source)])


def install_focus_validator(installer: Installer) -> str:
    """Install focus-validator from source on Python 3.12, the only version it runs on.

    Returns "" or an error text. Raises `Unavailable` when PATH has no Python 3.12.
    """
    base = parts.find_python_312()
    if base is None:
        raise Unavailable("focus-validator runs on Python 3.12, and PATH has none")
    environment = make_environment(parts.FOCUS / "bin" / "python", base)
    installer.install(environment, [ROOT / "tests" / "focus.lock"])
    source = ["--no-deps", "--no-build-isolation", "-r", str(ROOT / "tests" / "focus-source.lock")]
    installer.call(environment, ["--require-hashes", *source])
    return "" if parts.find_focus_validator() else "focus-validator is not in its environment"


def install_guidellm(installer: Installer) -> str:
    """Install guidellm with the engine's torch, which it needs to split data into batches.

    Returns "" or an error text. Raises `Unavailable` when no engine is installed.
    """
    torch = parts.engine_torch()
    if torch is None:
        raise Unavailable("guidellm borrows the engine's torch, and there is no engine")
    environment = make_environment(parts.GUIDELLM / "bin" / "python")
    lock = str(ROOT / "tests" / "guidellm.lock")
    installer.call(environment, ["--require-hashes", "--no-deps", "-r", lock])
    (packages,) = parts.GUIDELLM.glob("lib/python3*/site-packages")
    (packages / parts.TORCH_LINK).write_text(f"{torch}\n", encoding="utf-8")
    return "" if parts.find_guidellm() else "guidellm is not in its environment"


def install_compressor(_installer: Installer) -> str:
    """Install LLM Compressor in the way that `engine install --compressor` does."""
    if parts.find_engine() is None:
        raise Unavailable("llm-compressor is laid over the engine's packages: there is no engine")
    place = Environment(parts.engine_folder())
    try:
        compressor.install_compressor(place, parts.compressor_folder(), lambda _words, _share: None)
    except InstallError as error:
        return str(error)
    return "" if parts.find_compressor() else "llm-compressor is not in its folder"


def install_docs(installer: Installer) -> str:
    environment = make_environment(parts.DOCS / "bin" / "python")
    installer.install(environment, [ROOT / "deploy" / "docs.lock"])
    return "" if parts.find_docs() else "MkDocs is not in its environment"


# Parts with an environment of their own that are not SDKs.
APART = {
    "compressor": install_compressor,
    "docs": install_docs,
    "focus-validator": install_focus_validator,
    "guidellm": install_guidellm,
}


def install_engine(python: Path) -> str:
    """Install the engine. Return "" or an error text.

    Raises `Unavailable` when the command succeeds without installing an engine, because no torch is
    built for this Python.
    """
    command = [str(python.parent / "breakeven"), "engine", "install"]
    answer = subprocess.run(
        [*command, "--directory", str(parts.engine_folder())], check=False, text=True,
        stdout=subprocess.PIPE, stderr=None if sys.stderr.isatty() else subprocess.STDOUT,
    )  # fmt: skip
    said = "\n".join(answer.stdout.splitlines()[-20:])
    if answer.returncode:
        return said or "failed"
    if parts.find_engine() is None:
        raise Unavailable(" ".join(said.split()))
    return ""


# Newer versions reject a lock without packages of other platforms, which a registry may lack.
NPM = "npm@10.9.9"


def install_node(name: str) -> str:
    if shutil.which("npm") is None:
        return "Node is missing: sudo apt-get install nodejs npm"
    folder = parts.SDK / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(ROOT / "tests" / "sdk" / name / file, folder / file)
    answer = subprocess.run(
        ["npx", "--yes", NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return answer.stderr[-2000:] if answer.returncode else ""


def print_failure(failed: str) -> None:
    if failed:
        print(f"   not installed: {failed}", flush=True)
