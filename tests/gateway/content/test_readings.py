"""Each way to read a stretch otherwise has signs, and yields stretches that rise."""

from itertools import pairwise

from gateway.config.content_patterns import compile_signs
from gateway.content.readings import READINGS
from gateway.content.sign_index import ends_in

TEXTS = (
    "&#52;&#49; 4111%201111 5555 then 3412",
    "one two three four five six seven",
    "\u56db\u4e00\u4e00\u4e00 \u4e00\u4e00\u4e00\u4e00",
    "52 49 49 49 49 49 49 0x34, 0x31",
    "part 1: 5555\npart 2: 3412\npart 3: 4444\npart 4: 1115",
    "my card starts with 5555, followed by 3412, then 4444 and ends in 1115",
    "reversed: 5111444421435555",
    "card 5555 34l2 4444 11l5",
)


def test_a_sign_calls_the_reading_that_reads_the_text() -> None:
    for entry, text in zip(READINGS, TEXTS, strict=True):
        assert ends_in(compile_signs(entry.signs), text.encode()), text
        found = list(entry.read(text))
        assert found, text
        assert all(before[1] <= after[0] for before, after in pairwise(found))
        assert all(text[begin:end] != plain for begin, end, plain in found)


def test_plain_words_are_read_by_none() -> None:
    for entry in READINGS:
        assert list(entry.read("We met at noon and it rained all day")) == []
