"""Readers are made once for each set of kinds."""

import asyncio

import pytest

from gateway.config.schema_content import ContentSection
from gateway.content.reader_set import ReaderSet
from router.content import content_terms


async def test_the_same_kinds_have_the_same_reader() -> None:
    readers = ReaderSet(ContentSection(patterns={"own": "falcon"}))
    terms = content_terms({"email": "mask", "own": "refuse"})
    first, second = await asyncio.gather(readers.reader(terms), readers.reader(terms))
    assert first is second
    assert await readers.reader(content_terms({"email": "refuse", "own": "mask"})) is first
    assert await readers.reader(content_terms({"card": "mask"})) is not first


async def test_what_cannot_be_compiled_is_told_and_asked_again() -> None:
    readers = ReaderSet(ContentSection(patterns={"own": "(?<=a)b"}))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\w"):
            await readers.reader(content_terms({"own": "mask"}))
