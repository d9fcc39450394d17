"""Span attributes in vocabularies other than OpenTelemetry's GenAI conventions. Pure.

Each vocabulary in `otel.vocabularies` adds its attributes: OpenInference (Phoenix, Arize) and
Langfuse. They include the caller (`user.id`, `session.id`, tags), which the conventions omit. No
prompt or answer is included; an unknown cost is omitted. Dollars are floating-point numbers, as
both define them: the ledger has the exact amounts.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.kinds import KINDS
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.telemetry.otel import genai_attributes
from gateway.telemetry.otel.genai_attributes import Attributes
from ledger.journals.records import AttemptSettled
from ledger.money import PUSD_PER_USD

EMBEDDING = "EMBEDDING"


@dataclass(frozen=True, slots=True)
class SpanVocabulary:
    """One vocabulary: attributes of a request, of an attempt's start, and of its end.

    `of_ending` takes the Unix time at which the attempt began, in nanoseconds.
    """

    of_request: Callable[[RoutingPlan], Attributes]
    of_attempt: Callable[[RoutingPlan, AttemptPlan], Attributes]
    of_ending: Callable[[AttemptSettled, int], Attributes]


def _openinference_request(plan: RoutingPlan) -> Attributes:
    return {"openinference.span.kind": "CHAIN", **_asker(plan, "tag.tags")}


def _openinference_attempt(plan: RoutingPlan, step: AttemptPlan) -> Attributes:
    target = step.frozen.target
    kind = KINDS[plan.asked.kind].openinference_kind
    name = "embedding.model_name" if kind == EMBEDDING else "llm.model_name"
    return {
        "openinference.span.kind": kind,
        name: target.upstream_model,
        "llm.request.model_name": plan.model,
        "llm.system": genai_attributes.provider(target),
        "llm.provider": target.provider or genai_attributes.OWN_ENGINE,
        **_asker(plan, "tag.tags"),
    }


def _openinference_ending(record: AttemptSettled, _: int) -> Attributes:
    tokens = record.tokens
    said: dict[str, int | float] = {
        "llm.token_count.prompt": tokens.whole_prompt,
        "llm.token_count.completion": tokens.output,
        "llm.token_count.total": tokens.whole_prompt + tokens.output,
        "llm.token_count.prompt_details.cache_read": tokens.cached,
        "llm.token_count.prompt_details.cache_write": tokens.cache_write + tokens.cache_write_1h,
        "llm.token_count.prompt_details.audio": tokens.audio_input,
        "llm.token_count.completion_details.reasoning": tokens.reasoning,
        "llm.token_count.completion_details.audio": tokens.audio_output,
    }
    if record.cost_pusd is not None:
        said["llm.cost.total"] = record.cost_pusd / PUSD_PER_USD
    return said


def _langfuse_request(plan: RoutingPlan) -> Attributes:
    return {
        "langfuse.trace.name": f"{genai_attributes.operation(plan)} {plan.model}",
        "langfuse.trace.metadata.team": plan.identity.team_id or "",
        "langfuse.trace.metadata.policy": plan.policy.name,
        **_asker(plan, "langfuse.trace.tags"),
    }


def _langfuse_attempt(plan: RoutingPlan, step: AttemptPlan) -> Attributes:
    is_embedding = KINDS[plan.asked.kind].openinference_kind == EMBEDDING
    return {
        "langfuse.observation.type": "embedding" if is_embedding else "generation",
        "langfuse.observation.model.name": step.frozen.target.upstream_model,
        **_asker(plan, "langfuse.trace.tags"),
    }


def _langfuse_ending(record: AttemptSettled, begun_ns: int) -> Attributes:
    """Return the end's attributes. Details and times are JSON; token kinds do not overlap."""
    tokens = record.tokens
    usage = {
        "input": tokens.input,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
        "input_audio": tokens.audio_input,
        "output": tokens.plain_output,
        "output_reasoning": tokens.reasoning,
        "output_audio": tokens.audio_output,
        "output_image": tokens.image_output,
        "total": tokens.whole_prompt + tokens.output,
    }
    said = {"langfuse.observation.usage_details": json.dumps(usage)}
    if record.cost_pusd is not None:
        cost = {"total": record.cost_pusd / PUSD_PER_USD}
        said["langfuse.observation.cost_details"] = json.dumps(cost)
    if record.ttft_us is not None:
        first = datetime.fromtimestamp(begun_ns / 1e9 + record.ttft_us / 1e6, UTC)
        said["langfuse.observation.completion_start_time"] = json.dumps(first.isoformat())
    if (failure := genai_attributes.error_of(record)) is not None:
        said |= {
            "langfuse.observation.level": "ERROR",
            "langfuse.observation.status_message": failure,
        }
    return said


def _asker(plan: RoutingPlan, tags_name: str) -> Attributes:
    """Return the caller's attributes: the key's user and tags, and the client's session."""
    said: dict[str, str | tuple[str, ...]] = {}
    if plan.identity.user_id is not None:
        said["user.id"] = plan.identity.user_id
    if plan.asked.session is not None:
        said["session.id"] = plan.asked.session
    if plan.identity.tags:
        said[tags_name] = tuple(f"{name}={value}" for name, value in plan.identity.tags)
    return said


VOCABULARIES = {
    "openinference": SpanVocabulary(
        _openinference_request, _openinference_attempt, _openinference_ending
    ),
    "langfuse": SpanVocabulary(_langfuse_request, _langfuse_attempt, _langfuse_ending),
}
