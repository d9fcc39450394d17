"""Readers by the kinds that a policy names, made once: to compile them takes a while."""

import asyncio
from collections.abc import Mapping

from gateway.config.content_kinds import CONTENT_KINDS
from gateway.config.schema_content import ContentSection
from gateway.content.request_reader import RequestReader
from gateway.content.text_scanner import TextScanner
from router.content import UNKNOWN, ContentTerms


class ReaderSet:
    """One per worker: the same kinds have the same reader, and so the same memory."""

    def __init__(self, section: ContentSection) -> None:
        self._section = section
        self._readers: dict[frozenset[str], RequestReader] = {}
        self._making: dict[frozenset[str], asyncio.Task[TextScanner]] = {}

    async def reader(self, terms: ContentTerms) -> RequestReader:
        """Return the reader of all kinds that the terms name. Raises what compiling does."""
        kinds = frozenset(kind for kind, _ in terms)
        known = self._readers.get(kinds)
        return await self._make(kinds) if known is None else known

    async def _make(self, kinds: frozenset[str]) -> RequestReader:
        """Compile in a thread, once for all who wait: the engine lets the loop turn meanwhile."""
        making = self._making.get(kinds)
        if making is None:
            making = asyncio.create_task(asyncio.to_thread(self._scanner, kinds))
            self._making[kinds] = making
        try:
            scanner = await asyncio.shield(making)
        finally:
            self._making.pop(kinds, None)
        return self._readers.setdefault(kinds, RequestReader(scanner))

    def _scanner(self, kinds: frozenset[str]) -> TextScanner:
        own: Mapping[str, str] = self._section.patterns
        patterns = [(name, own[name]) for name in sorted(own) if name in kinds]
        return TextScanner(kinds & CONTENT_KINDS.keys() - {UNKNOWN}, patterns)
