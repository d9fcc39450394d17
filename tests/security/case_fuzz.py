"""S7: seeds of `corpus/fuzz`, changed at random, through the readers of what others wrote.

Each target says which errors are its own; any other is a finding, and so is a broken promise: of
events, that they joined are what came; of bodies, that what was taken is taken again. A run is
seeded, counts its executions, and prints the first findings as they were fed.
"""

import random
from collections.abc import Callable
from pathlib import Path

from case import Case, CaseFigures, Given

from backends.errors import UpstreamBroken
from backends.sse import EventSplitter, cut_usage, data_spans, join_data, usage_members
from gateway.config.settings import Settings
from gateway.errors import RequestError
from gateway.http.body import decode_members, encode
from gateway.kinds import request_size
from gateway.kinds.chat import read_chat
from gateway.policies.sets import examine_set
from ledger.money import MoneyError
from ledger.prices.book import PriceError
from ledger.prices.files import parse_price_file
from ledger.prices.negotiated import parse_price_csv

SEEDS = Path(__file__).with_name("corpus") / "fuzz"
FULL, QUICK = 1_000_000, 500
LONGEST = 4096
WORDS = (
    b"\r\n", b"\n\n", b"\r", b"data:", b"data: [DONE]", b'"usage":', b"null", b"{}", b"[]", b'"\\',
    b"\\u0000", b"\\ud800", b"\xef\xbb\xbf", b"\xff", b"\x00", b"1e999", b"-0", b"9" * 40, b"NaN",
    b"{" * 50, b"[" * 50, b"*a", b"&a ", b"!!python/object/apply:os.system ", b"<<: *a", b"? ",
    b'"pattern"', b'"messages"', b"[" * 2000, b"2026-13-01", b": ",
    b"!!int ''", b"!!bool x", b"!!timestamp x", b"!!float snan", b"0x" + b"f" * 4000, b"*a, *a, *a",
    b"\xe2\x80\xa8", b'""', b",", b"=1+1", b"0x10", b"1_0", b".inf",
)  # fmt: skip


def events(data: bytes) -> None:
    """Cut anywhere, the events and the rest are what came, and so is each without its usage."""
    splitter, found = EventSplitter(), []
    step = 1 + len(data) % 7
    for start in range(0, len(data), step):
        found += splitter.feed(data[start : start + step])
    assert b"".join(found) + bytes(splitter.rest) == data
    for event in found:
        spans = data_spans(event)
        if spans:
            usage_members(join_data(event, spans))
            assert len(cut_usage(event, b"")) <= len(event)


def body(data: bytes) -> None:
    """What is taken is taken once more as it goes on."""
    members = decode_members(data)
    asked = read_chat(members, max_n=8, session=None)
    request_size.check(members, bytes(members.get("messages", b"")))
    again = read_chat(decode_members(encode(members)), max_n=8, session=None)
    assert (asked.model, asked.n, asked.max_tokens) == (again.model, again.n, again.max_tokens)


def policies(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    found = examine_set(text, Settings(), "fuzzed")
    assert (found.settings is None) == bool(found.faults) or found.settings is not None


def prices(data: bytes) -> None:
    parse_price_file(data.decode("utf-8", "replace"), book="fuzzed", rank=1)


def price_table(data: bytes) -> None:
    parse_price_csv(data, book="fuzzed")


Target = tuple[Callable[[bytes], None], tuple[type[Exception], ...]]
# With what a target may raise.
TARGETS: dict[str, Target] = {
    "sse": (events, (UpstreamBroken,)),
    "json": (body, (RequestError,)),
    "policies": (policies, ()),
    "prices": (prices, (PriceError, MoneyError)),
    "pricecsv": (price_table, (PriceError,)),
}


def changed(seed: bytes, other: bytes, rng: random.Random) -> bytes:
    """A few changes: bytes turned, taken out, doubled, words put in, two seeds crossed."""
    data = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and place < len(data):
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + rng.choice((1, 2, 8, 64))]
        elif kind == 2:
            data[place:place] = data[place : place + rng.choice((1, 4, 32))]
        elif kind == 3:
            data[place:place] = rng.choice(WORDS)
        elif kind == 4:
            data[place:] = other[rng.randrange(len(other) + 1) :]
        elif place < len(data):
            data[place] ^= 1 << rng.randrange(8)
    return bytes(data[:LONGEST])


def fuzzed(name: str) -> Callable[[Given], CaseFigures]:
    def play(given: Given) -> CaseFigures:
        run, own = TARGETS[name]
        seeds = [path.read_bytes() for path in sorted((SEEDS / name).iterdir())]
        rng, wrong = random.Random(f"{given.seed}{name}"), []
        count = QUICK if given.broken or not given.full else FULL
        for number in range(count):
            data = seeds[number] if number < len(seeds) else changed(*_two(seeds, rng), rng)
            try:
                run(data)
                if given.broken and b"\xff" in data:
                    raise IndexError("planted")  # noqa: TRY301  (beside what is being tested)
            except own:
                if given.broken and b"\x00" in data:
                    wrong.append(data)
            except (Exception, RecursionError) as error:  # noqa: BLE001 - every other is a finding
                wrong.append(data)
                if len(wrong) <= 3 and not given.broken:
                    given.say(f"  {name}: {type(error).__name__}: {error}: {data!r}"[:2000])
        return CaseFigures(len(wrong), f"{count:,} executions from {len(seeds)} seeds")

    return play


def _two(seeds: list[bytes], rng: random.Random) -> tuple[bytes, bytes]:
    return rng.choice(seeds), rng.choice(seeds)


CASES = tuple(
    Case("S7", f"findings in {name}", fuzzed(name), "an error is planted behind a byte")
    for name in TARGETS
)
