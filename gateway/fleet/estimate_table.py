"""Learned estimates of a host, in one memory-mapped file that survives restarts.

The file has a head of float64 cells, then the rows of `router.token_ratio`, `router.target_output`,
`router.target_prompts` and `router.cached_share`, then the names of the rows. Any process may write
any row (`EstimateRows` explains why this is safe). Rows contain sums and names of models, teams and
targets, but no prompts.
"""

from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from gateway.fleet.mapped_file import map_file
from gateway.fleet.output_overruns import TargetOverruns
from router.cached_share import SHARE_CELLS, CachedShare, ShareRow
from router.estimate_rows import RowKey, cells_of
from router.estimator_rules import AGING_S
from router.target_output import OUTPUT_CELLS, OutputRow, TargetOutput
from router.target_output import SLOTS as TARGETS
from router.target_prompts import PROMPT_CELLS, PromptRow, TargetPrompts
from router.token_ratio import ROW_CELLS, SLOTS, RatioRow, TokenRatio

ESTIMATES_FILE = "estimates"  # in the run directory
MAGIC = 0xB4EA_E510
HEAD_CELLS = 8
NAME_BYTES = 192  # rows with longer names work, and are shown without a name
_STAMP, _RESET, _SWEPT_S = range(3)


class KnownRatio(NamedTuple):
    """Estimates of one key; the names are None if they were too long to store."""

    model: str | None
    team: str | None
    row: RatioRow


class KnownTarget(NamedTuple):
    """Estimates of one target; None where nothing is known."""

    output: OutputRow | None = None
    prompts: PromptRow | None = None
    cached: ShareRow | None = None


class EstimateTable:
    """Memory-mapped table of learned estimates. Close it after its last use."""

    def __init__(self, path: Path, slots: int = SLOTS) -> None:
        head = HEAD_CELLS * 8
        widths = (
            (ROW_CELLS, slots),
            *((cells, TARGETS) for cells in (OUTPUT_CELLS, PROMPT_CELLS, SHARE_CELLS)),
        )
        *starts, names = accumulate((8 * cells_of(*width) for width in widths), initial=head)
        *self._names, size = accumulate((NAME_BYTES * rows for _, rows in widths), initial=names)
        self._map = map_file(path, size)
        self._head: memoryview[float] = memoryview(self._map)[:head].cast("d")
        stamp = float(MAGIC + slots)
        if self._head[_STAMP] != stamp:  # new, or another version: the content is invalid
            self._map[:] = bytes(size)
            self._head[_STAMP] = stamp
        cells: list[memoryview[float]] = [
            memoryview(self._map)[start:end].cast("d") for start, end in pairwise((*starts, names))
        ]
        self._overruns = cells[1], cells[2]
        named = [partial(self._name, first) for first in self._names]
        self.ratio = TokenRatio(cells[0], named[0])
        self.target_output = TargetOutput(cells[1], named[1])
        self.target_prompts = TargetPrompts(cells[2], named[2])
        self.cached_share = CachedShare(cells[3], named[3])

    def copy_overruns(self) -> TargetOverruns:
        """Return a copy of the overruns as they are now."""
        output, prompts = (memoryview(bytearray(cells)).cast("d") for cells in self._overruns)
        return TargetOverruns(TargetOutput(output), TargetPrompts(prompts))

    def close(self) -> None:
        self.ratio.close()
        self.target_output.close()
        self.target_prompts.close()
        self.cached_share.close()
        self._head.release()
        self._map.close()

    @property
    def reset(self) -> int:
        """Return the number of the newest reset that was applied to the table."""
        return int(self._head[_RESET])

    def reset_to(self, number: int) -> None:
        self._head[_RESET] = float(number)

    def sweep(self, now_s: float) -> bool:
        """Age all rows if `AGING_S` has passed since the last sweep; return whether it did.

        The first process that calls this after the interval does the work.
        """
        since_s = now_s - self._head[_SWEPT_S]
        if 0.0 <= since_s < AGING_S:
            return False
        self._head[_SWEPT_S] = now_s
        self.ratio.age(now_s)
        self.target_output.age(now_s)
        self.target_prompts.age(now_s)
        self.cached_share.age(now_s)
        return True

    def known(self) -> list[KnownRatio]:
        """Return all keys with their estimates, sorted by model and team."""
        found = [
            KnownRatio(*self._named(self._names[0], row.slot), row) for row in self.ratio.rows()
        ]
        return sorted(found, key=lambda known: (known.model or "", known.team or ""))

    def known_targets(self) -> dict[str | None, KnownTarget]:
        """Return all targets with their estimates by name; None for a name too long to store."""
        _, outputs, prompts, shares = self._names
        known: dict[str | None, KnownTarget] = {}
        for output in self.target_output.rows():
            known[self._named(outputs, output.slot)[0]] = KnownTarget(output)
        for prompt in self.target_prompts.rows():
            name = self._named(prompts, prompt.slot)[0]
            known[name] = known.get(name, KnownTarget())._replace(prompts=prompt)
        for share in self.cached_share.rows():
            name = self._named(shares, share.slot)[0]
            known[name] = known.get(name, KnownTarget())._replace(cached=share)
        return known

    def _name(self, first: int, slot: int, key: RowKey) -> None:
        text = "\0".join(key).encode("utf-8", "replace")
        start = first + slot * NAME_BYTES
        text = text if len(text) <= NAME_BYTES else b""
        self._map[start : start + NAME_BYTES] = text.ljust(NAME_BYTES, b"\0")

    def _named(self, first: int, slot: int) -> tuple[str | None, str | None]:
        start = first + slot * NAME_BYTES
        text = self._map[start : start + NAME_BYTES].decode("utf-8", "replace").rstrip("\0")
        model, found, team = text.partition("\0")
        return (model, team) if found else (None, None)


def seen_overruns(state: Path) -> TargetOverruns | None:
    """Return the overruns in a host's state folder; None if it has no estimates.

    Simulations use them to compute the same holds as the host.
    """
    path = state.resolve() / "run" / ESTIMATES_FILE
    if not path.exists():
        return None
    table = EstimateTable(path)
    try:
        return table.copy_overruns()
    finally:
        table.close()
