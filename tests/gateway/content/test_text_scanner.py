"""Kept generators and evasions, written without the detectors: recall and clean prompts."""

import base64
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.contentcases import (
    CHECKSUMMED,
    EVASIONS,
    KINDS,
    NUMBER_EVASIONS,
    SENTENCES,
    clean_prompts,
    written,
)
from gateway.content.text_scanner import SourceTexts, TextScanner

ROOT = Path(__file__).parents[3]
EACH = 12
CLEAN = 600


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS, [("project", r"(?i)falcon-\d+"), ("city", "M\u00fcnster")])


@pytest.mark.parametrize("kind", KINDS)
def test_recall_of_each_kind_in_every_spelling(scanner, kind) -> None:
    rng, missed, asked = random.Random(kind), [], 0
    for evasion in (*EVASIONS, *(NUMBER_EVASIONS if kind == "card" else ())):
        for _ in range(EACH):
            text = written(rng, kind, evasion)
            asked += 1
            if all(find.kind != kind for find in scanner.scan([text]).finds):
                missed.append((evasion, text))
    least = 0.99 if kind in CHECKSUMMED else 0.95
    assert 1 - len(missed) / asked >= least, missed[:3]


def test_a_clean_prompt_is_seldom_changed(scanner) -> None:
    """Addresses that stand in our own sources are found, and are no mistake."""
    sources = [path.read_text() for path in sorted((ROOT / "gateway" / "fleet").rglob("*.py"))]
    changed = [
        (text, result)
        for text in clean_prompts(random.Random(8), sources, CLEAN)
        if (result := scanner.scan([text])).finds or result.unread
    ]
    assert len(changed) * 200 <= CLEAN, [result.finds[:2] for _, result in changed]


def test_places_are_those_of_the_text_as_sent(scanner) -> None:
    hidden = "4111\u200b1111 1111\u00ad1111"
    texts = ["none", f"caf\u00e9 {hidden} end", "a@b.com"]
    found = {
        find.kind: texts[find.text][find.start : find.end] for find in scanner.scan(texts).finds
    }
    assert found == {"card": hidden, "email": "a@b.com"}


def test_own_patterns_are_found_in_any_script(scanner) -> None:
    text = "\u4f60\u597d FALCON-17 in M\u00fcnster, falcon-"
    finds = scanner.scan(["first", text]).finds
    assert {(find.kind, text[find.start : find.end]) for find in finds} == {
        ("project", "FALCON-17"), ("city", "M\u00fcnster"),
    }  # fmt: skip


def test_the_same_in_two_spellings_has_one_value(scanner) -> None:
    finds = scanner.scan(["4111 1111 1111 1111", "4111-1111-1111-1111"]).finds
    assert len({find.value for find in finds}) == 1


def test_a_word_names_what_stands_in_base64_behind_it(scanner) -> None:
    for before, kind in (("BSN", "national_id"), ("phone", "phone")):
        inside = {"national_id": "it is 111222333", "phone": "it is 030 12345678"}[kind]
        run = base64.b64encode(inside.encode()).decode()
        text = f"my {before}: {run}"
        finds = scanner.scan([text]).finds
        assert [(find.kind, text[find.start : find.end]) for find in finds] == [(kind, run)]
        assert scanner.scan([f"my order: {run}"]).finds == []


@pytest.mark.parametrize("gap", [", ", "*", " ~ ", "\u2605", "#", "][", "&", " || "])
def test_a_telephone_with_a_country_s_code_is_found_between_any_marks(scanner, gap) -> None:
    number = gap.join(("+49", "89", "8291", "0480"))
    assert [find.kind for find in scanner.scan([f"phone: {number} ok"]).finds] == ["phone"]
    assert scanner.scan([f"total: {number} ok"]).finds == []


def test_a_picture_stands_for_a_mark(scanner) -> None:
    for mark in ("\u2665", "\U0001f512", " \u25a0 ", "\u300d\u300c", " \u00b7 "):
        text = f"card {mark.join(('4111', '1111', '1111', '1111'))} ok"
        assert [find.kind for find in scanner.scan([text]).finds] == ["card"], mark


def test_what_is_too_deep_is_not_read(scanner) -> None:
    text = "card 4111111111111111"
    for _ in range(6):
        text = base64.b64encode(f"note: {text}".encode()).decode()
    result = scanner.scan([text])
    assert result.finds == []
    assert result.unread == 1


def test_the_sentences_alone_hold_nothing(scanner) -> None:
    assert scanner.scan([*SENTENCES]).finds == []


LONG_RUNS = """
from gateway.content.text_scanner import TextScanner
for pattern in (r"a+b", r"[a-z]+@x", r"(a|aa)+b", r"(ab)+c", r"(x+x+)+y", r"[a-z]+-[0-9]{3}"):
    scanner = TextScanner((), [("own", pattern)])
    for text in ("a" * 20_000 + "@x", "x" * 20_000, "ab" * 10_000, "0 " + "ab" * 700 + "c b-123"):
        print(pattern, [(find.start, find.end) for find in scanner.scan([text]).finds])
"""


def test_no_pattern_and_no_text_ends_the_process() -> None:
    """In a process of its own: the engine read beyond memory."""
    ran = subprocess.run(
        [sys.executable, "-c", LONG_RUNS], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "[a-z]+@x [(0, 20002)]" in ran.stdout
    assert "(ab)+c [(2, 1403)]" in ran.stdout


@given(st.text(alphabet="a1@ \u00e9\u0430\u4e2d\uff11\U0001d7d8", max_size=12))
def test_places_in_bytes_are_places_in_characters_also_inside_of_one(text) -> None:
    """Signs of single bytes may end inside of a character; such a place is before it."""
    source = SourceTexts([text])
    ends = range(1, len(source.data))
    told = [place for _, inside in source.by_text(ends) for place in inside]
    assert told == [len(source.data[:end].decode(errors="ignore")) - 1 for end in ends]


def test_letters_of_another_script_do_not_shift_what_stands_behind_them(scanner) -> None:
    text = "a\u0437 " * 300 + "41\uff111 1111 1111 1111"
    assert [find.kind for find in scanner.scan([text]).finds] == ["card"]
