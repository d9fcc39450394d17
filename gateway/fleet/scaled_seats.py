"""Which engines of this machine a plan wants up, kept over restarts of the host.

One file an engine, in the state directory: `up TOKEN` or `down TOKEN`. The scaling process writes
them; the parent reads them when it starts, so that a host that comes back runs what ran.
"""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from gateway.config.schema_scale import ScaleSection

SEATS_DIR = "scaled"


class SeatTag(NamedTuple):
    """The last word of a plan on an engine."""

    token: str
    is_up: bool


def tags_dir(state_dir: Path, pool: str) -> Path:
    """Return where the tags of a pool lie; it is there once the pool was sized."""
    return state_dir / SEATS_DIR / quote(pool, safe="")


def write_tag(state_dir: Path, pool: str, place: int, tag: SeatTag) -> None:
    """Replace an engine's tag, whole or not at all."""
    folder = tags_dir(state_dir, pool)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f".{place}.new"
    draft.write_text(f"{'up' if tag.is_up else 'down'} {tag.token}", encoding="utf-8")
    draft.replace(folder / str(place))


def read_tags(state_dir: Path, pool: str) -> dict[int, SeatTag]:
    """Return the tags by place; empty before the pool was ever sized."""
    found = {}
    folder = tags_dir(state_dir, pool)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.isdecimal():
            word, _, token = path.read_text(encoding="utf-8").partition(" ")
            found[int(path.name)] = SeatTag(token, word == "up")
    return found


def is_seat_wanted(state_dir: Path, scale: ScaleSection | None, engine: str) -> bool:
    """Whether `pool:NAME/PLACE` is to start with its host.

    All are where no plan acts, or before the pool was ever sized.
    """
    pool, _, place = engine.removeprefix("pool:").rpartition("/")
    acts = scale is not None and scale.mode == "act" and scale.actuator.kind == "supervisor"
    if not acts or not tags_dir(state_dir, pool).is_dir():
        return True
    tag = read_tags(state_dir, pool).get(int(place))
    return tag is not None and tag.is_up
