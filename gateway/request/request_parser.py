"""Request body for a target: its own model name, usage options, limits and cache salt."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from backends.allowed_tools import allowed_tools
from backends.anthropic import MESSAGES_PATH
from gateway.fleet.fleet import Target
from gateway.http.body import Members, decode_member, encode, encode_raw
from gateway.kinds.inference_request import NEWER_LIMIT, OLDER_LIMIT, InferenceRequest
from gateway.kinds.late_instructions import move_instructions
from gateway.kinds.service_tiers import TIER_MEMBER, own_tier, standard_word
from gateway.kinds.text_members import stream_options
from gateway.request.plan import AttemptPlan, RoutingPlan
from router.types import RoutingRequest

# OpenAI's reasoning models refuse the older name; most others only know that.
CAP_NAMES = {"openai": NEWER_LIMIT}
_TRUE = encode_raw(True)
_LIMITS = (OLDER_LIMIT, NEWER_LIMIT)


def _drop_nulls(members: Members) -> bool:
    """Drop limits that are `null`; return whether a limit is left."""
    for name in _LIMITS:
        if name in members and bytes(members[name]) == b"null":
            del members[name]
    return not members.keys().isdisjoint(_LIMITS)


def _name_limit(members: Members) -> None:
    """Rename the limit to the name that every engine reads; TensorRT-LLM lacks the newer one."""
    given = members.pop(NEWER_LIMIT, None)
    if given is not None:
        members[OLDER_LIMIT] = given


def _standard_word(target: Target) -> str | None:
    return standard_word(target.api, messages=target.speaks_messages)


def _with_tier(
    asked: InferenceRequest, request: RoutingRequest, target: Target
) -> InferenceRequest:
    """Return the request with its target's service tier, or the standard one if requested."""
    word = own_tier(request, target.tier) if target.tier else ""
    if asked.standard_tier and not target.own:
        word = _standard_word(target) or ""
    if not word:
        return asked
    return replace(asked, members={**asked.members, TIER_MEMBER: encode_raw(word)})


def unnamed_tier(asked: InferenceRequest, target: Target) -> tuple[str, ...]:
    """Return the service tier member if the target does not get it, else nothing."""
    told = not asked.standard_tier or target.own or _standard_word(target) is not None
    return () if told else (TIER_MEMBER,)


def attempt_body(plan: RoutingPlan, step: AttemptPlan) -> bytes:
    """Return the body that the target of an attempt gets."""
    target, asked, frozen = step.frozen.target, plan.asked, step.frozen
    if target.speaks_messages:
        if asked.native is not None:
            return asked.native.body_for(
                target.upstream_model,
                max_tokens=frozen.candidate.output_cap,
                tells_users=target.tells_users,
            )
        if asked.max_tokens is None and frozen.candidate.output_cap is None and frozen.limits:
            # Messages require a limit: the one of the bound.
            longest = frozen.limits.max_output_tokens(plan.request.prompt_tokens)
            asked = replace(asked, max_tokens=longest)
    if target.takes_marks:
        asked = asked.with_marks()
    if target.by_priority:
        asked = asked.with_priority(plan.terms.rule.priority)
    if asked.template_arguments and not target.template_arguments:
        asked = asked.without_template_arguments()
    if target.extra and asked.form is None:
        asked = replace(asked, members={**target.extra, **asked.members})
    asked = _with_tier(asked, plan.request, target)
    if step.frozen.told_twice:
        asked = asked.with_older_limit()
    return body_for(
        asked,
        upstream_model=target.upstream_model,
        own=target.own,
        # With a budget, an open-ended request gets the limit for which its hold was sized.
        max_tokens_cap=step.frozen.candidate.output_cap,
        salt=plan.route.salt if target.own and target.accepts_salt else None,
        cap_name=CAP_NAMES.get(target.api or "", OLDER_LIMIT),
    )


def attempt_route(asked: InferenceRequest, target: Target) -> tuple[str, Mapping[str, str]]:
    """Return the path below a target's base URL, and the client's headers for its API."""
    if target.speaks_messages and asked.native is not None:
        return MESSAGES_PATH, asked.native.headers
    return asked.path, {}


def _offer_allowed(members: Members) -> None:
    """Offer the tools that a choice of type `allowed_tools` names, as engines choose among all."""
    if b'"allowed_tools"' not in bytes(members.get("tool_choice", b"")):
        return
    tools, choice = (decode_member(members, name, Any) for name in ("tools", "tool_choice"))
    allowed = allowed_tools(tools, choice)
    if allowed is not None and allowed.tools:
        members["tools"] = encode_raw(allowed.tools)
        members["tool_choice"] = encode_raw(allowed.mode)


def body_for(
    asked: InferenceRequest,
    *,
    upstream_model: str,
    own: bool,
    max_tokens_cap: int | None,
    salt: str | None,
    cap_name: str = OLDER_LIMIT,
) -> bytes:
    """Return the body for one target: model renamed, usage requested, caps and salt set.

    `cap_name` is the member that caps the answer at the target, if the client named none.
    """
    if asked.form is not None:
        return asked.form.body_for(upstream_model)
    members = dict(asked.members)
    members["model"] = encode_raw(upstream_model)
    is_limited = _drop_nulls(members)
    if own:
        _name_limit(members)
        _offer_allowed(members)
        if asked.late_instructions and (moved := move_instructions(bytes(members["messages"]))):
            members["messages"] = moved
    if asked.stream and asked.extent is None:  # speech and pictures have streams of their own
        options = stream_options(asked.members)
        options["include_usage"] = _TRUE
        if own:
            options["continuous_usage_stats"] = _TRUE
        else:
            options.pop("continuous_usage_stats", None)
        members["stream_options"] = encode_raw(options)
    if asked.translated is not None and "max_tokens" in members:
        members[cap_name] = members.pop("max_tokens")
    if max_tokens_cap is not None:
        members[cap_name] = encode_raw(max_tokens_cap)
    elif asked.max_tokens and not is_limited:
        members["max_tokens"] = encode_raw(asked.max_tokens)  # a kind with a default
    if salt is not None:
        members["cache_salt"] = encode_raw(salt)
    return encode(members)
