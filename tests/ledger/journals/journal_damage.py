"""What a bad disk does to a segment, case by case, and what must come of it.

A case is the damaged bytes and the stretches of the original that it touches. Records whose frame
is not touched must all be read, once; where one is not, that must be told.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ledger.journals.homes import segments
from ledger.journals.layout import FrameKind, encode_head
from ledger.journals.reader import JournalOffset, JournalReader
from ledger.journals.records import RequestRefused

BLOCK = 512
RECORDS = 50


class DamageCase(NamedTuple):
    name: str
    data: bytes
    touched: tuple[tuple[int, int], ...]  # from, up to


def short_record(number: int) -> RequestRefused:
    """About 100 bytes, of a length that varies."""
    model = "m" * (number % 7)
    return RequestRefused(f"r{number:04d}", number, "k", "t", "o", model, "p", "budget", 429)


def encode_frame(payload: bytes, sequence: int, stamp: int, kind=FrameKind.RECORD) -> bytes:
    return encode_head(payload, sequence, stamp, kind) + payload


def flips(data: bytes, number: int) -> DamageCase:
    place = number // 8
    changed = bytearray(data)
    changed[place] ^= 1 << number % 8
    return DamageCase(f"bit {number} flipped", bytes(changed), ((place, place + 1),))


def blocks(data: bytes, number: int) -> DamageCase:
    """Each block zeroed, written twice, written over the next, and swapped with the next."""
    which, start = number % len(_BLOCK_KINDS), number // len(_BLOCK_KINDS) * BLOCK
    end = min(start + BLOCK, len(data))
    block, after = data[start:end], data[end : end + BLOCK]
    rest, beyond = data[end + len(after) :], (end, end + len(after))
    changed, touched = {
        "zeroed": (data[:start] + bytes(end - start) + data[end:], ((start, end),)),
        "twice": (data[:end] + block + data[end:], ((end, end),)),
        "over the next": (data[:end] + block[: len(after)] + rest, (beyond,)),
        "swapped": (data[:start] + after + block + rest, ((start, end), beyond)),
    }[_BLOCK_KINDS[which]]
    return DamageCase(f"block {start} {_BLOCK_KINDS[which]}", changed, touched)


def cuts(data: bytes, number: int) -> DamageCase:
    """Each byte taken out, and the end cut off at each byte."""
    place = number // 2
    if number % 2:
        return DamageCase(f"cut at {place}", data[:place], ((place, len(data)),))
    inside = data[:place] + data[place + 1 :]
    return DamageCase(f"byte {place} cut out", inside, ((place, place + 1),))


_BLOCK_KINDS = ("zeroed", "twice", "over the next", "swapped")
KINDS = {"flips": flips, "blocks": blocks, "cuts": cuts}


def count_of(kind: str, size: int) -> int:
    """Return how many cases of a kind a segment of so many bytes has."""
    return {"flips": 8 * size, "cuts": 2 * size}.get(kind, -(-size // BLOCK) * len(_BLOCK_KINDS))


def chosen(kind: str, data: bytes, most: int, seed: int) -> Iterator[DamageCase]:
    """All cases of a kind with `JOURNAL_DAMAGE=all`, else about so many of them."""
    total, dice = count_of(kind, len(data)), random.Random(seed)
    share = 1.0 if os.environ.get("JOURNAL_DAMAGE") == "all" else most / total
    for number in range(total):
        if dice.random() < share:
            yield KINDS[kind](data, number)


class ReadOutcome(NamedTuple):
    records: list
    told: list
    since: JournalOffset


def read_on(reader: JournalReader, journal, since: JournalOffset, **limits) -> ReadOutcome:
    """Read as the ledger writer does, until nothing moves; `limits`: of one read."""
    records, told = [], []
    for _ in range(10_000):
        chunk = reader.read(journal, since, **limits)
        records += [frame.record for frame in chunk.frames if frame.record is not None]
        told += [*chunk.damages, *(frame.fault for frame in chunk.frames if frame.fault)]
        if chunk.after == since:
            return ReadOutcome(records, told, since)
        since = chunk.after
    raise AssertionError("the journal never ends")


def read_to_its_end(reader: JournalReader, journal, **limits) -> ReadOutcome:
    """The same of a journal without an owner, with what is told when it is buried."""
    records, told, since = read_on(reader, journal, JournalOffset(), **limits)
    lost = reader.lost_tail(journal, since)
    return ReadOutcome(records, [*told, *([] if lost is None else [lost])], since)


def frame_spans(reader: JournalReader, journal) -> dict[str, tuple[int, int]]:
    """Where the frame of each record lies, by the record's id; of one segment."""
    chunk = reader.read(journal, JournalOffset())
    return {frame.record.request_id: (frame.start, frame.end) for frame in chunk.frames}


def faults(
    case: DamageCase, spans, wanted: list, found: ReadOutcome, data: bytes = b""
) -> list[str]:
    """What is wrong with what was read of a damaged journal of these records.

    With `data`, the whole segment, a frame that was moved and is whole counts as intact.
    """
    wrong = []
    counts = Counter(record.request_id for record in found.records)
    known = {record.request_id: record for record in wanted}
    wrong += [f"{name} read {count} times" for name, count in counts.items() if count > 1]
    wrong += [f"{record.request_id} is another" for record in found.records
              if known.get(record.request_id) != record]  # fmt: skip
    lost = [name for name in known if name not in counts]
    for name in lost:
        start, end = spans.get(name, (0, 0))
        is_there = start < end <= len(data) and data[start:end] in case.data
        if is_there or not any(_touches(stretch, start, end) for stretch in case.touched):
            wrong.append(f"{name} is intact and was not read")
    if lost and not found.told:
        wrong.append(f"{len(lost)} records lost and nothing told")
    return [f"{case.name}: {fault}" for fault in wrong]


def _touches(stretch: tuple[int, int], start: int, end: int) -> bool:
    """An empty stretch is a place where something was put in: it touches what it lies within."""
    since, until = stretch
    return start < since < end if since == until else since < end and start < until


def only_segment(journal):
    (path,) = segments(journal)
    return path
