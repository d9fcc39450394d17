"""What a finished attempt teaches the estimators, by the table in `router.estimator_rules`."""

import re
from typing import Final

from msgspec import Raw

from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.prompt_bytes import TEXT_MEMBERS
from gateway.request.attempt import Attempt
from gateway.request.plan import LearnedEstimates
from gateway.request.request_counters import RequestCounters
from ledger.journals.records import AttemptSettled, TokenCounts
from router.estimator_rules import Estimator, Objection
from router.types import Feature

_MEDIA: Final = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
_HOSTED: Final = Feature.HOSTED_TOOLS
# Plain words: a member of an enumeration takes as long to hash as all else here.
_RATIO, _LENGTHS = Estimator.BYTES_PER_TOKEN.value, Estimator.OUTPUT_TOKENS.value
LATENCY = Estimator.API_LATENCY.value
# A part of a message says what it is; inside of a text its quotes would be escaped.
_PART: Final = re.compile(rb'"type"\s*:\s*"([^"\\]*)"')
_TEXT_PARTS: Final = frozenset((
    b"custom", b"ephemeral", b"function", b"input_text", b"output_text", b"refusal", b"text",
    b"thinking",
))  # fmt: skip
_SOUND: Final = b'"audio"'  # what an assistant said aloud in an earlier turn
_TEXTS: Final = ("prompt", "input", "query", "documents")
_BEGINNING: Final = 64  # bytes of a text or a list that tell what it holds


class EstimateLearner:
    """One per worker: judges each attempt, and hands on what may be learned."""

    def __init__(self, learned: LearnedEstimates, metrics: RequestCounters) -> None:
        self._learned = learned
        self._metrics = metrics

    def learn(self, attempt: Attempt, outcome: AttemptOutcome, record: AttemptSettled) -> bool:
        """Whether the attempt's usage is an observation: finished, reported and undisputed."""
        objection, count = unreported(outcome, record), self._metrics.count_observation
        if objection is not None:
            count(_RATIO, objection)
            count(_LENGTHS, objection)
            return False
        plan, tokens = attempt.plan, record.tokens
        objection = not_text(plan.asked, tokens)
        if objection is None:
            objection = self._learned.ratio.observe(
                plan.learning_key, plan.asked.prompt_bytes, tokens.prompt, record.settled_us / 1e6
            )
        count(_RATIO, objection)
        self._learned.outputs.observe(
            plan.learning_key,
            tokens.prompt,
            round(tokens.output / plan.request.n),
            cut=outcome.finish_reason == "length",
        )
        count(_LENGTHS, None)
        return True


def unreported(outcome: AttemptOutcome, record: AttemptSettled) -> Objection | None:
    """Why the usage of an attempt is no observation at all."""
    if record.disputed:
        return Objection.DISPUTED
    if outcome.status != "finished" or record.basis != "reported":
        return Objection.UNREPORTED
    return None


def not_text(asked: InferenceRequest, tokens: TokenCounts) -> Objection | None:
    """Why the bytes of a request are not the text that its target counted."""
    members = asked.members
    if asked.form is not None or tokens.audio_ms or tokens.searches:
        return Objection.KIND  # charged by other units: its tokens are an estimate, if anything
    if tokens.audio_input or (asked.features and not asked.features.isdisjoint(_MEDIA)):
        return Objection.MEDIA
    if asked.features and _HOSTED in asked.features:
        return Objection.TOOLS
    if not TEXT_MEMBERS.issuperset(members):
        return Objection.MEMBERS
    if "messages" in members:
        return _not_said(bytes(members["messages"]))
    objections = [_not_texts(members[name]) for name in _TEXTS if name in members]
    return next((objection for objection in objections if objection is not None), None)


def _not_said(messages: bytes) -> Objection | None:
    """Why a conversation is more than text: a part of it is none, or of a kind not known here."""
    if _SOUND in messages:
        return Objection.MEDIA
    if b'"type"' in messages and not _TEXT_PARTS.issuperset(_PART.findall(messages)):
        return Objection.MEDIA
    return None


def _not_texts(value: Raw) -> Objection | None:
    """Why a prompt or an input is none: it begins with an object, or with a token's number."""
    first = bytes(memoryview(value)[:_BEGINNING]).lstrip(b"[ \t\r\n")[:1]
    if first == b"{":
        return Objection.MEDIA
    return Objection.KIND if first.isdigit() else None
