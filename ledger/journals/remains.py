"""Reads the copies of damaged segments that this disk still has.

Copies lie in the journal directory's folder `damaged` (`ledger.journals.homes.keep_copy`), one
folder for each journal, or where a person copied a journal's folder. Nothing is written here.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ledger.journals.frames import decode
from ledger.journals.homes import number_of
from ledger.journals.layout import HEADER_BYTES, parse_header, stamp_of
from ledger.journals.records import Record
from ledger.journals.repair import repair_frames
from ledger.journals.scan import SegmentScanner


class SegmentRemains(msgspec.Struct, frozen=True):
    """The records of one damaged segment. `repaired`: records in which one bit was turned back.

    `lost_bytes` count what is neither intact nor could be put right.
    """

    path: Path
    journal: str
    segment: int
    intact: tuple[Record, ...]
    repaired: tuple[Record, ...]
    lost_bytes: int


def read_remains(path: Path) -> SegmentRemains:
    """Return what a copy says; its header, else its folder, names its journal. Raises `OSError`."""
    journal, segment, data = path.parent.name, number_of(path), path.read_bytes()
    if path.suffix == ".journal":
        frames = list(decode(data, 0, sealed=True))
        intact = tuple(frame.record for frame in frames if frame.record is not None)
        lost = sum(frame.end - frame.start for frame in frames if frame.record is None)
        return SegmentRemains(path, journal, segment, intact, (), lost)
    header = parse_header(data[:HEADER_BYTES])
    since = 0 if header is None else HEADER_BYTES
    journal = journal if header is None else header.journal
    stamp = stamp_of(journal, segment)
    scanner = SegmentScanner(data, 0, stamp, since=since)
    scan = scanner.scan(0)
    holes = [(damage.start, damage.end) for damage in scan.damages]
    rest = scanner.rest(scan)
    if rest:
        holes.append((scan.end, scan.end + len(rest)))
    repaired, lost = [], 0
    for start, end in holes:
        found = list(repair_frames(data[start:end], start, stamp))
        repaired += [frame.record for frame in found if frame.record is not None]
        lost += end - start - sum(frame.end - frame.start for frame in found)
    whole = tuple(frame.record for frame in scan.frames if frame.record is not None)
    return SegmentRemains(path, journal, segment, whole, tuple(repaired), lost)


def records_of_bytes(raw: bytes, journal: str, segment: int, offset: int) -> Iterator[Record]:
    """Yield the records of quarantined bytes: a payload, or damaged frames of that segment."""
    try:
        yield msgspec.msgpack.decode(raw, type=Record)
    except msgspec.MsgspecError:
        for frame in repair_frames(raw, offset, stamp_of(journal, segment)):
            if frame.record is not None:
                yield frame.record
