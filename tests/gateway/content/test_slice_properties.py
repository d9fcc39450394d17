"""However a text is cut in slices, the same is found; a mask changes nothing else."""

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploy.contentattacks import ATTACKS, attack
from deploy.contentcases import KINDS
from gateway.content.masking import Placeholders, mask_texts
from gateway.content.request_reader import RequestReader
from gateway.content.slices import SlicePace, slices_of
from gateway.content.text_scanner import TextScanner

WORDS = (
    "the committee met on a rainy afternoon; ", "f(x) = 12.5, ", "\n", "| 12 | 34 |\n",
    "2026-11-28 10:22:33,123 INFO took 12.5 ms\n", "\u8fd9\u662f\u3002",
    "caf\u00e9 \u2013 na\u00efve ", "\u0434\u0430, \u043c\u0438\u0440. ",
)  # fmt: skip
PLACEHOLDER = re.compile(r"\[(?:" + "|".join(KINDS) + r")-\d+\]")


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


def text_of(seed: int, size: int) -> str:
    rng, parts = random.Random(seed), []
    while sum(map(len, parts)) < size:
        parts += rng.choices(WORDS, k=rng.randint(1, 12))
        kind = rng.choice(sorted(set(KINDS) - {"secret"}))
        parts.append(f" {attack(rng, kind, rng.choice(sorted(ATTACKS[kind])))} ")
    return "".join(parts)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10**6), st.sampled_from([1024, 1100, 1537, 2048, 4096]))
def test_slices_of_any_size_tell_the_same_as_the_whole(scanner, seed, size) -> None:
    text, reader = text_of(seed, 9_000), RequestReader(scanner)
    whole = {(find.kind, find.start, find.end) for find in scanner.scan([text]).finds}
    cut = [
        (find.kind, find.start, find.end)
        for group in slices_of([text], SlicePace(size))
        for find in reader._scan_group(group, [text]).finds
    ]
    assert len(cut) == len(set(cut)), "one find belongs to two slices"
    assert set(cut) == whole


def test_a_long_key_is_found_whole_wherever_a_slice_ends(scanner) -> None:
    reader, key = RequestReader(scanner), f"sk-ant-{'aB3-' * 60}"
    for before in range(800, 1100, 7):
        text = "w " * (before // 2) + key + " end" * 400
        finds = [
            find
            for group in slices_of([text], SlicePace(1024))
            for find in reader._scan_group(group, [text]).finds
            if find.kind == "secret"
        ]
        assert [text[find.start : find.end] for find in finds] == [key.rstrip("-")] or [
            text[find.start : find.end] for find in finds
        ] == [key], before


@given(st.integers(0, 10**6))
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_a_mask_changes_nothing_but_finds(scanner, seed) -> None:
    text = text_of(seed, 2_000)
    finds = scanner.scan([text]).finds
    masked = (await mask_texts([text], finds, [], sorted(KINDS), Placeholders())).get(0, text)
    kept, at = [], 0
    for find in sorted(finds, key=lambda each: each.start):
        kept.append(text[at : find.start])
        at = find.end
    assert PLACEHOLDER.split(masked) == [*kept, text[at:]]
