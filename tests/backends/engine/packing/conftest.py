"""A bundle of tiny wheels, made here: no index is asked and nothing large is copied."""

import base64
import hashlib
import shutil
import zipfile
from functools import partial
from pathlib import Path

import pytest

from backends.engine.packing.lockfile import WheelPlatform
from backends.engine.packing.pack import HERE, PackRequest, pack

VLLM = """\
import sys
sys.stdout.write("  --model MODEL\\n")
"""
COMMAND = """\
import os, subprocess, sys, sysconfig
from pathlib import Path

def main():
    words = dict(zip(sys.argv[3::2], sys.argv[4::2]))
    place = Path(words["--directory"])
    place.mkdir(exist_ok=True)
    (place / "breakeven-engine.json").write_text(repr((sys.argv, os.environ["PIP_NO_INDEX"])))
    print("vLLM stands")
"""


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record += f"{place},sha256={digest.rstrip(b'=').decode()},{len(text.encode())}\n"
            archive.writestr(place, text)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


def locked(name: str, version: str, wheel: Path, marker: str = "") -> str:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{name}=={version}{marker} \\\n    --hash=sha256:{digest}\n"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip finds, and the two locks that name them."""
    return made(tmp_path, monkeypatch)


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    vllm = write_wheel(folder, "vllm", "0.32.0", {"vllm/__init__.py": VLLM})
    runtime = write_wheel(folder, "nvidia_cuda_runtime", "13.0.96", {"nv/__init__.py": ""})
    tool = write_wheel(folder, "tinytool", "1.0", {"tinytool.py": "X = 1\n", "big.txt": "x" * 9**7})
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "requirements.lock").write_text(
        locked("vllm", "0.32.0", vllm)
        + locked("nvidia-cuda-runtime", "13.0.96", runtime, " ; platform_machine != 's390x'")
        + "elsewhere==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    )  # fmt: skip
    (tmp_path / "tools.lock").write_text(locked("tinytool", "1.0", tool))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def own(folder: Path) -> Path:
    files = {
        "ours/__init__.py": COMMAND,
        "breakeven-0.1.dist-info/entry_points.txt": "[console_scripts]\nbreakeven = ours:main\n",
    }
    return write_wheel(folder, "breakeven", "0.1", files)


def asked(folder: Path, **changes: object) -> PackRequest:
    model = folder / "tiny"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    given = {
        "out": folder / "bundle", "flavour": "cuda", "part_bytes": 1 << 20,
        "target": WheelPlatform(HERE), "model": model, "locks": folder / "locks",
        "tools": folder / "tools.lock", "own": own,
    }  # fmt: skip
    return PackRequest(**(given | changes))


@pytest.fixture
def request_of(tmp_path: Path, places: Path):
    return partial(asked, places.parent)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One bundle a file of tests; each test gets a copy."""
    folder = tmp_path_factory.mktemp("packed")
    with pytest.MonkeyPatch.context() as patch:
        made(folder, patch)
        return pack(asked(folder), lambda *_: None).folder


@pytest.fixture
def bundle(packed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(packed, tmp_path / "bundle")
