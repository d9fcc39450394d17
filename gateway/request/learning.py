"""Observations from finished attempts for the estimators of `router.estimator_rules`."""

import re
from typing import Final

from msgspec import Raw

from gateway.fleet.comparators import record_elsewhere
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.prompt_bytes import TEXT_MEMBERS
from gateway.kinds.request_size import spell_out
from gateway.kinds.thinking import asks_to_think
from gateway.request.attempt import Attempt
from gateway.request.limit_overruns import LimitOverrun, names_newer_alone
from gateway.request.plan import LearnedEstimates
from gateway.request.request_counters import RequestCounters
from ledger.journals.records import AttemptSettled, TokenCounts
from ledger.prices.quotes import cache_rule
from router.estimator_rules import Estimator, Objection
from router.target_output import EndedAnswer
from router.target_prompts import PromptOverrun
from router.types import Feature

_MEDIA: Final = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
_HOSTED: Final = Feature.HOSTED_TOOLS
# Plain strings: hashing an enum member takes as long as everything else here.
_USAGE, LATENCY = Estimator.BYTES_PER_TOKEN.value, Estimator.API_LATENCY.value
_OVERRUN, _UNSEEN = Estimator.OUTPUT_OVERRUN.value, Estimator.UNSEEN_OUTPUT.value
_PROMPT_OVERRUN, _CACHED = Estimator.PROMPT_OVERRUN.value, Estimator.CACHED_SHARE.value
# The type of a message part; within a text its quotes would be escaped.
_PART: Final = re.compile(rb'"type"\s*:\s*"((?:[^"\\]|\\.)*)"')
_TEXT_PARTS: Final = frozenset((
    b"custom", b"ephemeral", b"function", b"input_text", b"output_text", b"refusal", b"text",
    b"thinking",
))  # fmt: skip
_TEXTS: Final = ("prompt", "input", "query", "documents")
_BEGINNING: Final = 64  # bytes of a text or a list that show what it holds


class EstimateLearner:
    """The learner of one worker: judges each attempt and updates the estimators."""

    def __init__(self, learned: LearnedEstimates, metrics: RequestCounters) -> None:
        self._learned = learned
        self._count = metrics.count_observation

    def learn(
        self, attempt: Attempt, outcome: AttemptOutcome, record: AttemptSettled
    ) -> tuple[int, int] | None:
        """Return the reported tokens (prompt, output of one choice), None if nothing is learned."""
        objection = unreported(outcome, record)
        if objection is not None:
            self._count(_USAGE, objection)
            return None
        plan, tokens = attempt.plan, record.tokens
        asked, key, prompt = plan.asked, plan.learning_key, tokens.prompt
        objection = not_text(asked, tokens)
        if objection is None:
            at_s = record.settled_us / 1e6
            objection = self._learned.ratio.observe(key, asked.prompt_bytes, prompt, at_s)
        choice = round(tokens.output / plan.request.n)
        cut = outcome.finish_reason == "length"
        self._learned.outputs.observe(key, prompt, choice, cut=cut)
        if self._learned.exchange is not None:
            self._learned.exchange.tell(key, prompt, choice, cut=cut)
        self._count(_USAGE, objection)
        return prompt, choice

    def learn_overrun(self, attempt: Attempt, overrun: LimitOverrun, now_s: float) -> None:
        """Learn from a believed answer with more output than its limit.

        If the client used a name of the limit that the target does not know, only that is learned:
        the holds of other requests do not grow.
        """
        outputs, frozen = self._learned.target_output, attempt.step.frozen
        told_once = names_newer_alone(attempt.plan.asked) and not frozen.told_twice
        if told_once and overrun.is_text:
            outputs.observe_unknown_limit(frozen.target.name, now_s)
        else:
            thinks = asks_to_think(attempt.plan.asked.members)
            team = attempt.plan.learning_key[1]
            outputs.observe_overrun(
                frozen.target.name, overrun.tokens, now_s, team=team, thinks=thinks
            )
        self._count(_OVERRUN, None)

    def learn_prompt_overrun(self, attempt: Attempt, overrun: PromptOverrun, now_s: float) -> None:
        """Learn from a believed answer whose prompt was billed beyond its bound."""
        target = attempt.step.frozen.target.name
        team = attempt.plan.learning_key[1]
        self._learned.target_prompts.observe(target, overrun, now_s, team=team)
        self._count(_PROMPT_OVERRUN, None)

    def learn_cached(self, attempt: Attempt, record: AttemptSettled, *, reported: bool) -> None:
        """Record that an API read a prompt, and how much of it came from the API's cache.

        `reported`: the attempt's usage was accepted as an observation.
        """
        forecast, frozen = self._learned.cached, attempt.step.frozen
        if forecast is None or frozen.price is None:
            return
        rule, target = cache_rule(frozen.price), frozen.target.name
        prefix = attempt.plan.request.beginning
        if rule is None or record.tokens.prompt < rule.least_tokens or not prefix.marks:
            return
        if reported and frozen.prefix_tokens:
            at_s, cached = record.settled_us / 1e6, record.tokens.cached
            forecast.shares.observe(target, frozen.prefix_tokens, cached, at_s)
            self._count(_CACHED, None)
        if reported or attempt.first_token_s is not None:
            read_s = (
                attempt.dispatched_s if attempt.first_token_s is None else attempt.first_token_s
            )
            forecast.caches.record_read(target, prefix, rule, read_s)

    def learn_elsewhere(self, attempt: Attempt, *, reported: bool) -> None:
        """Record in the cache forecast that comparators would have read the prompt, too.

        This applies to prompts that own engines may serve.
        """
        forecast, plan, first_s = self._learned.cached, attempt.plan, attempt.first_token_s
        if forecast is None or plan.best_own is None:
            return
        if reported or first_s is not None:
            read_s = attempt.dispatched_s if first_s is None else first_s
            record_elsewhere(plan.comparators, plan.request, forecast, read_s)

    def learn_unseen(
        self, attempt: Attempt, outcome: AttemptOutcome, record: AttemptSettled
    ) -> None:
        """Learn a target's highest rate, and whether it thinks unseen, from an answer."""
        first_s = None if record.ttft_us is None else record.ttft_us / 1e6
        answer = EndedAnswer(
            record.tokens.output,
            record.tokens.reasoning,
            outcome.said_bytes,
            first_s,
            record.duration_us / 1e6,
        )
        target, at_s = attempt.step.frozen.target.name, record.settled_us / 1e6
        team = attempt.plan.learning_key[1]
        self._learned.target_output.observe(target, answer, at_s, team=team)
        self._count(_UNSEEN, None)


def unreported(outcome: AttemptOutcome, record: AttemptSettled) -> Objection | None:
    """Return why an attempt's usage is no observation; None where it is one."""
    if record.disputed:
        return Objection.DISPUTED
    if outcome.status != "finished" or record.basis != "reported":
        return Objection.UNREPORTED
    return None


def not_text(asked: InferenceRequest, tokens: TokenCounts) -> Objection | None:
    """Return why a request's bytes are not the text that its target counted, None if they are."""
    members = asked.members
    units = tokens.audio_ms or tokens.searches or tokens.characters or tokens.pictures
    if asked.form is not None or units:
        return Objection.KIND  # charged in other units: tokens are an estimate at most
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
    """Return why a conversation is more than text: a part of another or an unknown kind.

    Parts stand in a list within the list; searching for that byte takes a tenth of the time.
    """
    if messages.find(b"[", 1) < 0:
        return None
    messages = spell_out(messages)  # a name may be written in escapes
    if b'"type"' not in messages:
        return None
    return None if _TEXT_PARTS.issuperset(_PART.findall(messages)) else Objection.MEDIA


def _not_texts(value: Raw) -> Objection | None:
    """Return why a prompt or an input is no text: an object, or a token's number, comes first."""
    first = bytes(memoryview(value)[:_BEGINNING]).lstrip(b"[ \t\r\n")[:1]
    if first == b"{":
        return Objection.MEDIA
    return Objection.KIND if first.isdigit() else None
