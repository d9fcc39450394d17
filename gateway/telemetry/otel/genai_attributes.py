"""Attributes of spans and metrics by OpenTelemetry's GenAI conventions (v1.41). Pure.

No prompt, answer or key is included. Attributes without a convention, such as cost or policy, are
under `breakeven`. Input tokens include those read from a cache, as the conventions require.
"""

from collections.abc import Mapping

from gateway.fleet.fleet import Target
from gateway.kinds import KINDS
from gateway.request.plan import AttemptPlan, RoutingPlan
from ledger.journals.records import AttemptSettled

Attributes = Mapping[str, str | int | float | bool | tuple[str, ...]]

# Provider names to those of the conventions, where they differ.
PROVIDERS = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
OWN_ENGINE = "vllm"
OTHER = "_OTHER"  # the conventions' value for names without a series


def provider(target: Target) -> str:
    """Return the name of a target's provider in the conventions."""
    if target.own:
        return OWN_ENGINE
    name = target.provider or target.name
    return PROVIDERS.get(name, name)


def operation(plan: RoutingPlan) -> str:
    return KINDS[plan.asked.kind].otel_operation


def of_request(request_id: str, path: str) -> Attributes:
    return {
        "http.request.method": "POST",
        "http.route": path,
        "url.path": path,
        "breakeven.request.id": request_id,
    }


def of_decision(plan: RoutingPlan) -> Attributes:
    """Return the attributes of a request and its decision."""
    found: dict[str, str | int] = {
        "gen_ai.operation.name": operation(plan),
        "gen_ai.request.model": plan.model,
        "breakeven.team": plan.identity.team_id or "",
        "breakeven.policy": plan.policy.name,
        "breakeven.policy.version": plan.policy_version,
        "breakeven.decision.reason": plan.decision.reason.value,
        "breakeven.decision.candidates": len(plan.decision.verdicts),
    }
    if plan.decision.first_choice is not None:
        found["breakeven.decision.target"] = plan.decision.first_choice.candidate.name
    return found


def of_attempt(attempt_id: str, number: int, plan: RoutingPlan, step: AttemptPlan) -> Attributes:
    """Return the attributes of an attempt: what is sent, where to, and its forecast."""
    target, verdict = step.frozen.target, step.verdict
    found: dict[str, str | int | float | bool] = {
        "gen_ai.operation.name": operation(plan),
        "gen_ai.provider.name": provider(target),
        "gen_ai.request.model": target.upstream_model,
        "gen_ai.request.stream": plan.asked.stream,
        "breakeven.attempt.id": attempt_id,
        "breakeven.attempt.number": number,
        "breakeven.backend": "own" if target.own else "api",
        "breakeven.target": target.name,
        "breakeven.reason": verdict.reason.value,
    }
    if verdict.ttft_ms is not None:
        found["breakeven.ttft.predicted"] = verdict.ttft_ms / 1e3
    return found


def of_ending(record: AttemptSettled) -> Attributes:
    """Return the attributes of an ending; money in pico-USD, as in the ledger."""
    found: dict[str, str | int | float | bool | tuple[str, ...]] = {
        "gen_ai.usage.input_tokens": record.tokens.prompt,
        "gen_ai.usage.output_tokens": record.tokens.output,
        "gen_ai.usage.cache_read.input_tokens": record.tokens.cached,
        "breakeven.status": record.status,
        "breakeven.usage.basis": record.basis,
    }
    if record.finish_reason is not None:
        found["gen_ai.response.finish_reasons"] = (record.finish_reason,)
    if record.ttft_us is not None:
        found["gen_ai.response.time_to_first_chunk"] = record.ttft_us / 1e6
    if record.cost_pusd is not None:
        found["breakeven.cost.pusd"] = record.cost_pusd
    if record.slo_met is not None:
        found["breakeven.slo.met"] = record.slo_met
    if failure := error_of(record):
        found["error.type"] = failure
    return found


def error_of(record: AttemptSettled) -> str | None:
    """Return an attempt's error; a client disconnect is no failure of its target."""
    if record.status in ("finished", "client_gone"):
        return None
    return record.error or record.status
