"""Folder of llm-compressor, installed from its own lock beside the engine's packages.

llm-compressor and vLLM need different versions of compressed-tensors, so that one environment
cannot hold both. The folder is built under a temporary name and renamed when complete.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from backends.engine.environment import Environment
from backends.engine.packages import InstallError, find_installer

_HERE = Path(__file__).parent
_NAME = "engine-quantize"
_PACKAGE = "llmcompressor"


def compressor_lock() -> Path:
    """Return the path of the lock: beside this file if installed, else under `deploy/`."""
    packaged = _HERE / "locks" / _NAME
    folder = packaged if packaged.is_dir() else _HERE.parents[1] / "deploy" / _NAME
    return folder / "requirements.lock"


def has_compressor(environment: Environment, folder: Path) -> bool:
    """Return whether the folder, or else the engine's environment, has llm-compressor."""
    if (folder / _PACKAGE).is_dir():
        return True
    try:
        return (environment.packages / _PACKAGE).is_dir()
    except FileNotFoundError:
        return False


def install_compressor(
    environment: Environment, folder: Path, say: Callable[[str, float | None], None]
) -> bool:
    """Install llm-compressor if it is missing. Return `False` if it was there already.

    Raises `InstallError` when the engine's environment is missing or the installation fails.
    """
    if has_compressor(environment, folder):
        return False
    if not environment.python.exists():
        raise InstallError(f"{environment.directory} holds no engine: breakeven engine install")
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        find_installer(environment.python).install_lock(compressor_lock(), say, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return True
