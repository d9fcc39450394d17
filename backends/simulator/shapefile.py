"""Files of fitted engines: written by `engine fit --out`, read by what-ifs and simulators."""

from pathlib import Path

import msgspec

from backends.simulator.profiles import PROFILES, EnginePreset
from backends.simulator.shape import EngineShape


class ShapeFileError(Exception):
    """A file without an engine model; the text says why."""


def save(path: Path, shape: EngineShape) -> None:
    document = msgspec.json.format(msgspec.json.encode(shape), indent=2)
    path.write_bytes(document + b"\n")


def profile_of(word: str | None) -> EnginePreset | None:
    """Return a profile by its name, or a fitted engine by its file, `None` if it is neither.

    Raises `ShapeFileError` for an invalid file.
    """
    if word is None or word in PROFILES:
        return None if word is None else PROFILES[word]
    path = Path(word)
    if not path.is_file():
        return None
    return EnginePreset(path.stem, "", load(path), f"fitted: {word}", "", "", "")


def load(path: Path) -> EngineShape:
    """Return the engine of a file. Raises `ShapeFileError`."""
    try:
        shape = msgspec.json.decode(path.read_bytes(), type=EngineShape)
    except OSError as error:
        raise ShapeFileError(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ShapeFileError(f"{path}: no engine model: {error}") from error
    if shape.blocks < 2 or shape.block_tokens < 1 or shape.max_num_seqs < 1:
        raise ShapeFileError(f"{path}: no engine has {shape.blocks} blocks of KV cache")
    if not min(shape.step_timing.step.a_s, shape.step.a_s) > 0.0:
        raise ShapeFileError(f"{path}: `a_s` is the least duration of a step, and above 0")
    return shape
