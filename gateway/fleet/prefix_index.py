"""Index of the prompt prefixes in each engine's prefix cache, learned from prompts sent.

A prompt is cut at fixed positions (`ENDS`). The mark of a piece is a checksum of the text up to its
end, the tools and the tenant's salt. Each engine's table has as many cells as its KV cache holds
pieces, and new marks overwrite old ones. All processes of a host map the tables; a mark counts only
for the engine process it was sent to. A 4-byte store is atomic, so any process may write. A second
cell has a mark's time and size. Prefixes expire by KV events (`kv_events`) or an estimate
(`forgotten_s`). Telemetry publishes the share of hits that came true (`PREFIX_TRUST`).
"""

import math
import re
from collections.abc import Sequence
from mmap import mmap
from pathlib import Path
from zlib import crc32

from gateway.fleet.mapped_file import map_file
from gateway.fleet.shared_load import SharedLoadTable
from gateway.http.body import holds
from gateway.kinds import KINDS
from gateway.kinds.inference_request import InferenceRequest
from gateway.table_layout import EngineCell, SupervisionCell
from router.prompts import PromptPrefix
from router.types import RoutingRequest

PREFIXES_FILE = "prefix-index"  # in the run directory
PIECE_BYTES = 256  # about 64 tokens, four blocks of vLLM's
PIECE_TOKENS = 64
GROWTH = 16  # later pieces have a 16th of the text before them, so long prompts have few
LONGEST_BYTES = 1 << 21  # half a million tokens
LEFT = 0.37  # of a prefix's marks; below it the engine has forgotten the prefix
MISSES = 8  # in a row, after which the rest counts as not sent
LOOK_EVERY = 32  # cells between two checks of the size
# Share of a cache with marked prompts: the rest holds answers and the ends of prompts.
OF_PROMPTS = 0.92
PLACES = 1 << 14  # maximum cells of a table: a million tokens
# Members with which a request marks what a provider shall cache, and the one-hour option.
_MARK = "cache_control"
_MARK_BYTES = _MARK.encode()
_MARKED = (_MARK, "messages", "system", "tools")
_FOR_AN_HOUR = re.compile(rb'"ttl"\s*:\s*"1h"')
MINUTES_S, HOUR_S = 300, 3600
_MASK = (1 << 32) - 1
_TURN = 0x9E3779B1  # odd golden-ratio constant: separates the marks of different engine processes
_CELL_BYTES, _TIME_BYTES = 4, 8
_BYTES_PER_TOKEN = PIECE_BYTES // PIECE_TOKENS
TICKS_PER_S = 64  # resolution of times: two years fit in 32 bits
_CAPACITY, _TRUST = int(EngineCell.KV_CAPACITY_TOKENS), int(EngineCell.PREFIX_TRUST)
_FORGOTTEN, _LIFE = int(EngineCell.FORGOTTEN_S), int(SupervisionCell.LIFE)


def _piece_ends() -> tuple[int, ...]:
    ends = [PIECE_BYTES]
    while ends[-1] < LONGEST_BYTES:
        grown = ends[-1] // GROWTH // PIECE_BYTES * PIECE_BYTES
        ends.append(ends[-1] + max(PIECE_BYTES, grown))
    return tuple(ends)


ENDS = _piece_ends()
# Approximate tokens of each piece, stored in the lower half of a time cell.
SIZES = tuple(
    (end - start) // _BYTES_PER_TOKEN for start, end in zip((0, *ENDS[:-1]), ENDS, strict=True)
)
_SIZE_BITS = 32
_SIZE = (1 << _SIZE_BITS) - 1


NOTHING = PromptPrefix()
# Capacity, life, first cell, number of cells, and the value XORed with each mark.
_Table = tuple[float, float, int, int, int]
# Marks, number of cells and XOR value; then cell index and value of each mark.
_PlacedMarks = tuple[Sequence[int], int, int, list[tuple[int, int]]]


def beginning_of(asked: InferenceRequest, salt: str | None) -> PromptPrefix:
    """Return the prefix of a conversation or of one text; other requests have an empty one."""
    name = KINDS[asked.kind].prefix_member
    if name is None or asked.prompts > 1:
        return NOTHING
    text = memoryview(asked.members[name])[:-1]  # the closing bracket moves with the next turn
    if len(text) < PIECE_BYTES:
        return NOTHING
    tools = asked.members.get("tools", b"")
    mark = crc32(tools, crc32(salt.encode()) if salt else 0)
    marks, start, size = [], 0, len(text)
    for end in ENDS:
        if end > size:
            break
        mark = crc32(text[start:end], mark)
        marks.append(mark)
        start = end
    kept_s = _kept_s(asked) if marks else 0
    return PromptPrefix(tuple(marks), len(memoryview(tools)), max(1, asked.prompt_bytes), kept_s)


def _kept_s(asked: InferenceRequest) -> int:
    """Return how many seconds a provider shall keep the marked prompt; 0 if nothing is marked."""
    members = asked.members if asked.native is None else asked.native.members
    if asked.translated:
        members = {**members, **asked.translated}
    kept_s = 0
    is_plain = asked.plain_turns and members is asked.members
    for name in _MARKED:
        if name in members and not (is_plain and name == "messages"):
            text = bytes(members[name])
            if name == _MARK or holds(text, _MARK_BYTES):
                if _FOR_AN_HOUR.search(text):
                    return HOUR_S
                kept_s = MINUTES_S
    return kept_s


def tokens_of(beginning: PromptPrefix, pieces: int, prompt_tokens: int) -> int:
    """Return about how many of the prompt's tokens lie in its first `pieces` pieces."""
    if not pieces:
        return 0
    covered, whole = beginning.ahead + ENDS[pieces - 1], beginning.whole
    return prompt_tokens if covered >= whole else prompt_tokens * covered // whole


class PrefixIndex:
    """Mapped tables of marks, one per engine row; without a path they are private memory."""

    def __init__(self, path: Path | None, board: SharedLoadTable) -> None:
        self._board = board
        places = max(1, len(board.layout.engines)) * PLACES
        marks = places * _CELL_BYTES
        size = marks + places * _TIME_BYTES
        self._map = mmap(-1, size) if path is None else map_file(path, size)
        self._bytes = memoryview(self._map)
        self._cells: memoryview[int] = self._bytes[:marks].cast("I")
        self._times: memoryview[int] = self._bytes[marks:size].cast("Q")
        engines = range(len(board.layout.engines))
        self._published = [board.published_row(engine) for engine in engines]
        self._lives = [board.owned_row(engine) + _LIFE for engine in engines]
        self._tables: list[_Table] = [(0.0, -1.0, 0, 0, 0)] * len(engines)
        self._placed: _PlacedMarks = (), 0, 0, []

    def close(self) -> None:
        self._cells.release()
        self._times.release()
        self._bytes.release()
        self._map.close()

    def look_up(self, engine: int, request: RoutingRequest) -> tuple[int, int]:
        """Return the prompt tokens sent to the engine before, and how many of them to count on."""
        beginning = request.beginning
        pieces = self.count_known(engine, beginning.marks)
        tokens = tokens_of(beginning, pieces, request.prompt_tokens)
        trust = self._board.cells[self._published[engine] + _TRUST] if tokens else 0.0
        return tokens, int(trust * tokens)

    def count_known(self, engine: int, marks: Sequence[int]) -> int:
        """Return how many leading pieces the engine was sent and may still hold.

        Other marks overwrite cells by chance, before a full cache forgets: after as many marks as
        cells, a share of 1/e is left. A mark covers all text before it. So all pieces up to the
        last mark found count, while at least that share of them (`LEFT`) is found.
        """
        _, _, first, places, turn = self._table(engine)
        cells, times = self._cells, self._times
        found = gone = missed = 0  # `missed`: lost marks in a row
        if not places:
            return 0
        placed = self._place_marks(marks, places, turn)
        for place, mark in placed[:MISSES]:
            if cells[first + place] == mark:
                break
        else:
            return 0  # most prompts were sent elsewhere: stop early
        oldest = self._board.cells[self._published[engine] + _FORGOTTEN] * TICKS_PER_S
        oldest = int(oldest) << _SIZE_BITS
        for looked, (place, mark) in enumerate(placed, 1):
            if cells[first + place] == mark and times[first + place] >= oldest:
                missed = 0
                if not gone or looked - gone >= LEFT * looked:
                    found = looked
            else:
                gone += 1
                missed += 1
                if missed == MISSES:
                    break
        return found

    def record_sent(self, engine: int, marks: Sequence[int], now_s: float) -> None:
        """Record that a prompt with these marks was sent to the engine; monotonic seconds."""
        _, _, first, places, turn = self._table(engine)
        if places:
            cells, times = self._cells, self._times
            at = (int(now_s * TICKS_PER_S) & _MASK) << _SIZE_BITS
            for (place, mark), tokens in zip(
                self._place_marks(marks, places, turn), SIZES, strict=False
            ):
                times[first + place] = at + tokens
                cells[first + place] = mark

    def record_released(self, engine: int, marks: Sequence[int], now_s: float) -> None:
        """Record the end of a request: an engine evicts the prefixes that it released first.

        Nothing is recorded before the cache is full, because it evicts nothing until then.
        """
        if self._board.cells[self._published[engine] + _FORGOTTEN] <= 0.0:
            return
        _, _, first, places, turn = self._table(engine)
        cells, times = self._cells, self._times
        at = (int(now_s * TICKS_PER_S) & _MASK) << _SIZE_BITS
        for place, mark in self._place_marks(marks, places, turn) if places else ():
            if cells[first + place] == mark:
                times[first + place] = at + (times[first + place] & _SIZE)

    def forgotten_s(self, engine: int) -> float:
        """Return the monotonic time before which prompts have left the cache; 0: none has.

        Each cell counts once, at its last time, so repeated prefixes are not counted twice. In a
        crowded table the size is corrected for marks that share a cell.
        """
        capacity, _, first, places, _ = self._table(engine)
        capacity *= OF_PROMPTS
        sent = taken = 0
        for at in sorted(self._times[first : first + places].tolist(), reverse=True):
            if not at:
                return 0.0
            taken += 1
            sent += at & _SIZE
            if sent < capacity and taken % LOOK_EVERY:
                continue
            full = taken / places
            crowd = -math.log1p(-full) / full if full < 1.0 else math.inf
            if sent * crowd >= capacity:
                return (at >> _SIZE_BITS) / TICKS_PER_S
        return 0.0

    def _place_marks(self, marks: Sequence[int], places: int, turn: int) -> list[tuple[int, int]]:
        """Return cell index and value of each mark, cached because most engines share them."""
        known = self._placed
        if known[0] is not marks or known[1] != places or known[2] != turn:
            placed = [(mark % places, mark ^ turn) for mark in marks]
            known = self._placed = marks, places, turn, placed
        return known[3]

    def _table(self, engine: int) -> "_Table":
        """Return the engine's table for its current cache size and process."""
        cells = self._board.cells
        capacity, life = cells[self._published[engine] + _CAPACITY], cells[self._lives[engine]]
        known = self._tables[engine]
        if known[0] != capacity or known[1] != life:
            places = min(PLACES, int(capacity) // PIECE_TOKENS)
            turn = (int(life) + 1) * _TURN & _MASK
            known = self._tables[engine] = capacity, life, engine * PLACES, places, turn
        return known
