"""Inspection of a request's content before routing, and the actions of its policy.

Every failure makes the result stricter: a detector that raises, a guardrail that times out, a mask
that leaves a finding. No text reaches a log, an error or a record: only kinds and counts do.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from gateway.config.schema_content import ContentSection
from gateway.content.guardrail_hook import GuardrailHook, HookFailure
from gateway.content.masking import Placeholders
from gateway.content.reader_set import ReaderSet
from gateway.content.request_reader import RequestReader
from gateway.errors import RequestError
from gateway.kinds.content_findings import ContentFindings
from gateway.kinds.inference_request import InferenceRequest
from router.content import UNKNOWN, ContentAction, ContentTerms, kinds_under
from router.types import Residency

log = logging.getLogger(__name__)

_MASK, _KEEP, _REFUSE = ContentAction.MASK, ContentAction.KEEP_INSIDE, ContentAction.REFUSE


class ContentCounters(Protocol):
    """Counts of found content; implemented by `gateway.telemetry.metrics`."""

    def count_content(self, kind: str, action: str, count: int) -> None:
        """Count the findings of one kind in one request, by the action taken."""

    def count_detector_failure(self, detector: str) -> None:
        """Count one request that a detector failed to inspect."""


class ContentRefusal(RequestError):
    """A request refused by its policy for its content; `findings` has kinds and counts."""

    def __init__(self, findings: ContentFindings, kinds: list[str]) -> None:
        names = ", ".join(f"`{kind}`" for kind in kinds)
        super().__init__(
            "content_refused",
            f"The request holds content that its policy refuses: {names}. Leave it out.",
            retry=False,
        )
        self.findings = findings


class ContentInspector:
    """An inspector of requests; one per worker."""

    def __init__(
        self, readers: ReaderSet, hooks: Mapping[str, GuardrailHook], counters: ContentCounters
    ) -> None:
        self._readers = readers
        self._hooks = hooks
        self._counters = counters

    @property
    def count(self) -> Callable[[str, str, int], None]:
        """Return the counter of findings of guardrails in answers."""
        return self._counters.count_content

    async def aclose(self) -> None:
        for hook in self._hooks.values():
            await hook.aclose()

    async def inspect(
        self, asked: InferenceRequest, terms: ContentTerms, request_id: str, *, inside: bool
    ) -> InferenceRequest:
        """Return the request as it may be planned: masked or kept inside, with its findings.

        `inside`: the request stays inside in any case. Raises `ContentRefusal`.
        """
        inspection = _Inspection(asked, terms, inside=inside)
        try:
            inspection.reader = await self._readers.reader(terms)
            inspection.add(await inspection.reader.read(asked))
        except RequestError:
            raise
        except Exception as error:  # noqa: BLE001  (a defect must not let content out)
            self._note_failure(inspection, "detectors", error)
        inspection.refuse_found()
        await self._mask(inspection)
        for hook in self._hooks_of(terms, "before"):
            await self._ask_hook(inspection, hook, request_id)
        inspection.refuse_found()
        for kind, count in inspection.found.items():
            for action in inspection.actions_of(kind):
                self._counters.count_content(kind, action, count)
        return inspection.result()

    def _hooks_of(self, terms: ContentTerms, stage: str) -> list[GuardrailHook]:
        kinds = {kind for kind, _ in terms}
        return [
            hook
            for name, hook in sorted(self._hooks.items())
            if name in kinds and hook.stage == stage
        ]

    def guards_of(self, terms: ContentTerms) -> list[tuple[GuardrailHook, list[str]]]:
        """Return the guardrails that read the answer, each with its actions."""
        return [
            (hook, [action for kind, action in terms if kind == hook.name])
            for hook in self._hooks_of(terms, "after")
        ]

    def _note_failure(self, inspection: "_Inspection", detector: str, error: Exception) -> None:
        log.warning(
            "a content detector failed detector=%s error=%s", detector, type(error).__name__
        )
        self._counters.count_detector_failure(detector)
        inspection.fail()

    async def _mask(self, inspection: "_Inspection") -> None:
        kinds = kinds_under(inspection.terms, _MASK, inspection.found)
        if not kinds or inspection.reader is None:
            return
        try:
            await inspection.mask(inspection.reader, kinds)
        except Exception as error:  # noqa: BLE001  (what cannot be masked stays inside)
            self._note_failure(inspection, "masks", error)

    async def _ask_hook(
        self, inspection: "_Inspection", hook: GuardrailHook, request_id: str
    ) -> None:
        """Call a guardrail; an external one gets no request that must stay inside."""
        if not hook.is_inside and inspection.is_kept:
            return
        asked, reader = inspection.asked, inspection.reader
        if reader is None:
            return
        try:
            texts = reader.texts_of(asked)
            answer = await hook.ask(texts, request_id, asked.model)
            inspection.add({hook.name: answer.count})
            if answer.texts is None or answer.texts == texts:
                if (hook.name, _MASK) in inspection.terms and answer.count:
                    inspection.keep(hook.name)  # it has a finding but no mask
            else:
                inspection.rewrite(reader, _others(texts, answer.texts))
        except HookFailure as error:
            self._note_failure(inspection, hook.name, error)
        except RequestError as error:  # its rewrite is no valid request
            self._note_failure(inspection, hook.name, error)


def _others(texts: Sequence[str], answered: Sequence[str]) -> dict[str, str]:
    """Return the replacement of each text. Raises `HookFailure` if equal texts get others."""
    others = dict(zip(texts, answered, strict=True))
    if any(others[text] != other for text, other in zip(texts, answered, strict=True)):
        raise HookFailure("equal texts with different ones in their places")
    return others


def open_inspector(section: ContentSection, counters: ContentCounters) -> ContentInspector:
    """Return a worker's inspector; detectors are compiled when a policy first needs them."""
    hooks = {name: GuardrailHook(name, hook) for name, hook in section.hooks.items()}
    return ContentInspector(ReaderSet(section), hooks, counters)


class _Inspection:
    """State of the inspection of one request: its findings and their consequences."""

    def __init__(self, asked: InferenceRequest, terms: ContentTerms, *, inside: bool) -> None:
        self.asked = asked
        self.terms = terms
        self.found: Counter[str] = Counter()
        self.reader: RequestReader | None = None
        self._inside = inside
        self._kept: set[str] = set()
        self._masked = False
        self._names = Placeholders()

    def add(self, found: Mapping[str, int]) -> None:
        self.found.update({kind: count for kind, count in found.items() if count})

    def keep(self, kind: str) -> None:
        self._kept.add(kind)

    def fail(self) -> None:
        self.found[UNKNOWN] += 1
        self._kept.add(UNKNOWN)

    @property
    def kept(self) -> list[str]:
        return sorted(self._kept.union(kinds_under(self.terms, _KEEP, self.found)))

    @property
    def is_kept(self) -> bool:
        """Return whether the request must stay inside by the findings so far."""
        return self._inside or bool(self.kept)

    def actions_of(self, kind: str) -> list[str]:
        actions = [action for name, action in self.terms if name == kind]
        return actions if kind not in self._kept else sorted({*actions, _KEEP.value})

    def refuse_found(self) -> None:
        kinds = kinds_under(self.terms, _REFUSE, self.found)
        if kinds:
            found = tuple(sorted(self.found.items()))
            raise ContentRefusal(ContentFindings(found, (_REFUSE.value,), "", self.terms), kinds)

    async def mask(self, reader: RequestReader, kinds: list[str]) -> None:
        """Mask the request and read it again.

        A request with a remaining finding stays inside. A stored form with one is not stored.
        """
        names = self._names
        self.asked = await reader.mask(self.asked, kinds, names)
        self._masked = True
        left = await reader.read(self.asked)
        self._kept.update(kind for kind in kinds if kind in left)
        if self.asked.kept:
            stored = await reader.read_kept(self.asked)
            if any(kind in stored and kind not in left for kind in kinds):
                self.asked = replace(self.asked, kept=None)

    def rewrite(self, reader: RequestReader, texts: Mapping[str, str]) -> None:
        self.asked = reader.with_texts(self.asked, texts)
        self._masked = True

    def result(self) -> InferenceRequest:
        """Return the request, with the findings also on the forms that may replace it."""
        kept = self.kept
        actions = (*((_MASK.value,) if self._masked else ()), *((_KEEP.value,) if kept else ()))
        findings = ContentFindings(
            tuple(sorted(self.found.items())), actions, ", ".join(kept), self.terms
        )
        residency = Residency.INTERNAL_ONLY if kept else self.asked.residency
        made = replace(self.asked, content=findings, residency=residency)
        if made.instead is None and made.shorten is None:
            return made
        if self._masked:  # lesser forms were made from the unmasked request
            return replace(made, instead=None, shorten=None)
        return _bind_less(made, findings, residency)


def _bind_less(
    made: InferenceRequest, findings: ContentFindings, residency: Residency
) -> InferenceRequest:
    """Return the request with the findings of the whole on its lesser forms."""

    def bind(less: InferenceRequest | None) -> InferenceRequest | None:
        if less is None:
            return None
        bound = replace(less, content=findings, residency=residency)
        return _bind_less(bound, findings, residency)

    shorten = made.shorten
    return replace(
        made,
        instead=bind(made.instead),
        shorten=None if shorten is None else lambda least_bytes: bind(shorten(least_bytes)),
    )
