"""Engines of this machine that a scaling plan wants up, stored across restarts.

The state directory has one file per engine, with `up TOKEN` or `down TOKEN`. The scaling process
writes them. The parent reads them when it starts, so that it starts the engines that ran before.
"""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from gateway.config.schema_scale import ScaleSection

SEATS_DIR = "scaled"


class SeatTag(NamedTuple):
    """Latest order of a scaling plan for one engine."""

    token: str
    is_up: bool


def tags_dir(state_dir: Path, pool: str) -> Path:
    """Return the folder of a pool's tags; it exists once the pool was scaled."""
    return state_dir / SEATS_DIR / quote(pool, safe="")


def write_tag(state_dir: Path, pool: str, place: int, tag: SeatTag) -> None:
    """Replace an engine's tag atomically."""
    folder = tags_dir(state_dir, pool)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f".{place}.new"
    draft.write_text(f"{'up' if tag.is_up else 'down'} {tag.token}", encoding="utf-8")
    draft.replace(folder / str(place))


def read_tags(state_dir: Path, pool: str) -> dict[int, SeatTag]:
    """Return the tags by replica number; empty if the pool was never scaled."""
    found = {}
    folder = tags_dir(state_dir, pool)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.isdecimal():
            word, _, token = path.read_text(encoding="utf-8").partition(" ")
            found[int(path.name)] = SeatTag(token, word == "up")
    return found


def is_seat_wanted(state_dir: Path, scale: ScaleSection | None, engine: str) -> bool:
    """Return whether the engine `pool:NAME/PLACE` is to start with its host.

    All engines are, if no plan acts or the pool was never scaled.
    """
    pool, _, place = engine.removeprefix("pool:").rpartition("/")
    acts = scale is not None and scale.mode == "act" and scale.actuator.kind == "supervisor"
    if not acts or not tags_dir(state_dir, pool).is_dir():
        return True
    tag = read_tags(state_dir, pool).get(int(place))
    return tag is not None and tag.is_up
