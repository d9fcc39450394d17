"""What detectors of content cost, and how well they find: `make bench-detectors`.

CPU of the thread in short pieces, the least of many, because the machine does other things. `cold`
is all text for the first time, by what it is; `further turn` one more turn of a conversation of
400 KB; `pause` the longest that the loop stood still while such a conversation was read.
"""

import argparse
import asyncio
import base64
import gc
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from deploy.contentattacks import ATTACKS, attack, clean_lookalikes
from deploy.contentcases import (
    EVASIONS,
    KINDS,
    NUMBER_EVASIONS,
    clean_prompts,
    split_parts,
    written,
)
from gateway.config.schema_content import ContentSection
from gateway.content.reader_set import ReaderSet
from gateway.content.request_reader import RequestReader
from gateway.content.text_scanner import TextScanner
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.inference_request import InferenceRequest
from router.content import content_terms

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "detectors.json"
CUT = 4000  # characters of a text of a conversation
COLD_KB = 16
PROSE = (
    "The committee met on a rainy afternoon to discuss what had become of the plan. Nobody was "
    "sure who should speak first, so the chair asked for a summary of the reports. It took a "
    'while, and when it was done the room was quiet. "We should go on," she said, "but slowly."\n\n'
)


def least_s(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(times):
        began_s = time.thread_time()
        work()
        best = min(best, time.thread_time() - began_s)
    return best


def texts() -> dict[str, str]:
    rng = random.Random(1)
    sources = [path.read_text() for path in sorted((ROOT / "gateway").rglob("*.py"))]
    code = "\n".join(sources).encode("ascii", "ignore").decode()
    guide = (ROOT / "CONTRIBUTING.md").read_text() + (ROOT / "README.md").read_text()
    logs = "\n".join(list(clean_prompts(rng, sources, 400))[1::5])
    items = [
        {"id": rng.randrange(10**8), "name": f"item {at}", "price": rng.random() * 100,
         "tags": ["a", "new"], "at": "2026-11-28T10:22:33Z", "active": True}
        for at in range(300)
    ]  # fmt: skip
    rows = (
        f"{at},{rng.random():.3f},{rng.randrange(10**6)},n{at},{rng.random()}" for at in range(900)
    )
    mixed = "Привет Python 3.11, версия 2. Für naïve café “quoted” text… 使用Python编程"
    return {
        "prose": PROSE * 200, "source code": code, "documents": guide * 4, "logs": logs,
        "dated logs": "\n".join(
            f"2026-11-{rng.randint(10, 28)} 10:{rng.randint(10, 59)}:22,{rng.randrange(1000)} INFO "
            f"[pool-{rng.randrange(10)}] request {rng.randrange(10**10)} took {rng.random():.2f} ms"
            for _ in range(600)
        ),
        "JSON": json.dumps(items, indent=1), "CSV": "\n".join(rows),
        "base64": base64.b64encode(rng.randbytes(20_000)).decode(),
        "numbers in columns": "\n".join(list(clean_prompts(rng, sources, 400))[4::5]),
        "Chinese": "\u8fd9\u662f\u4e00\u4e2a\u6587\u672c\uff0c\u6807\u70b9\u3002" * 2000,
        "Russian": "Привет, это обычный текст на русском языке. " * 2000,
        "German": "Überraschung für Größe, Straße, schön. Die Prüfung läuft „gut“. " * 300,
        "mixed scripts": mixed * 300,
    }  # fmt: skip


def cold(scanner: TextScanner, times: int) -> dict[str, float]:
    """Microseconds a KB of UTF-8, decoding and joining included."""
    found = {}
    for name, text in texts().items():
        part = text[: COLD_KB * 1024]
        raw = msgspec.json.encode([part[at : at + CUT] for at in range(0, len(part), CUT)])
        size_kb = len(part.encode()) / 1024
        took_s = least_s(lambda raw=raw: scanner.scan(msgspec.json.decode(raw)), times)
        found[name] = took_s * 1e6 / size_kb
    return found


def conversation(turns: int, text: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if turn % 2 else "user",
         "content": text[turn * 311 : turn * 311 + 400 * 1024 // turns]}
        for turn in range(turns)
    ]  # fmt: skip


def asked(messages: list[dict[str, Any]]) -> InferenceRequest:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return read_chat(decode_members(body), max_n=1, session=None)


async def further_turn_ms(reader: RequestReader, times: int) -> float:
    """One more question and answer of a KB behind 400 KB that were read."""
    text = PROSE * 3000
    messages = conversation(60, text)
    await reader.read(asked(messages))
    best = float("inf")
    for turn in range(times):
        messages += conversation(2, text[turn : turn + 1024])
        request = asked(messages)
        began_s = time.thread_time()
        await reader.read(request)
        best = min(best, time.thread_time() - began_s)
    return best * 1e3


async def longest_pause_ms(
    reader: RequestReader, times: int, make: Callable[[int], InferenceRequest]
) -> float:
    """The least, over several runs, of the longest time between two turns of the loop."""
    least = float("inf")
    for number in range(times):
        task = asyncio.create_task(reader.read(make(number)))
        worst = 0.0
        while not task.done():
            began_s = time.thread_time()
            await asyncio.sleep(0)
            worst = max(worst, time.thread_time() - began_s)
        least = min(least, worst)
    return least * 1e3


async def pauses(reader: RequestReader, large_mb: int) -> dict[str, float]:
    """Of a conversation of 400 KB, and of bodies that a gateway accepts at most."""
    size = large_mb << 20

    def of_one(text: str) -> Callable[[int], InferenceRequest]:
        request = asked([{"role": "user", "content": text * (size // len(text))}])
        return lambda _number: request

    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "a@b.co "}] * (size // 40)}]
    many = asked(parts)
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 1_250, 1_000)  # as in a worker
    return {
        "conversation": await longest_pause_ms(
            reader, 10, lambda number: asked(conversation(60, f"{number} {PROSE}" * 3000))
        ),
        f"{large_mb} MB of prose": await longest_pause_ms(reader, 2, of_one(PROSE)),
        f"{large_mb} MB of finds": await longest_pause_ms(reader, 1, of_one("a@b.co ")),
        f"{large_mb} MB of parts": await longest_pause_ms(reader, 1, lambda _number: many),
    }


def recall_of_attacks(scanner: TextScanner, each: int) -> dict[str, float]:
    rng = random.Random(21)
    return {
        kind: sum(
            any(find.kind == kind for find in scanner.scan([attack(rng, kind, name)]).finds)
            for name in names
            for _ in range(each)
        )
        / (len(names) * each)
        for kind, names in ATTACKS.items()
    }


def recall(scanner: TextScanner, each: int) -> dict[str, float]:
    rng, found = random.Random(11), {}
    for kind in KINDS:
        hits = total = 0
        for evasion in (*EVASIONS, *(NUMBER_EVASIONS if kind == "card" else ())):
            for _ in range(each):
                text = written(rng, kind, evasion)
                hits += any(find.kind == kind for find in scanner.scan([text]).finds)
                total += 1
        found[kind] = hits / total
    return found


async def split_recall(reader: RequestReader, each: int) -> dict[str, float]:
    rng, found = random.Random(12), {}
    for kind in KINDS:
        hits = 0
        for _ in range(each):
            parts = [{"type": "text", "text": part} for part in split_parts(rng, kind)]
            read = await reader.read(asked([{"role": "user", "content": parts}]))
            hits += kind in read
        found[kind] = hits / each
    return found


def changed_prompts(scanner: TextScanner, count: int) -> int:
    sources = [path.read_text() for path in sorted((ROOT / "gateway").rglob("*.py"))]
    return sum(
        bool(result.finds or result.unread)
        for result in (
            scanner.scan([text])
            for text in (
                *clean_prompts(random.Random(13), sources, count),
                *clean_lookalikes(random.Random(14), count),
            )
        )
    )


async def main(given: argparse.Namespace) -> dict[str, object]:
    scanner = TextScanner(KINDS)
    reader = await ReaderSet(ContentSection()).reader(content_terms(dict.fromkeys(KINDS, "record")))
    return {
        "cold_us_per_kb": cold(scanner, given.times),
        "further_turn_ms": await further_turn_ms(reader, given.times),
        "longest_pause_ms": await pauses(reader, given.large),
        "recall": recall(scanner, given.each),
        "recall_of_attacks": recall_of_attacks(scanner, given.each),
        "recall_of_split": await split_recall(reader, given.each * 4),
        "clean_changed": changed_prompts(scanner, given.clean),
        "clean": 2 * given.clean,
    }


def show(found: dict[str, object]) -> None:
    console = Console()
    for name, value in found.items():
        if isinstance(value, dict):
            table = Table("what", name)
            for key, figure in value.items():
                table.add_row(key, f"{figure:.4g}")
            console.print(table)
        else:
            console.print(
                f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="runs of which the least counts")
    parser.add_argument("--each", type=int, default=20, help="texts of each kind and evasion")
    parser.add_argument("--large", type=int, default=10, help="MB of the largest bodies")
    parser.add_argument("--clean", type=int, default=1000, help="clean prompts")
    figures = asyncio.run(main(parser.parse_args()))
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(figures, indent=2) + "\n")
    show(figures)
