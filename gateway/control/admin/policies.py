"""Operations of `breakeven policy`: check, compare, activate and roll back policy sets."""

import os
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY_POLICIES, POLICIES
from gateway.config.settings import version
from gateway.control import policy_changes
from gateway.control.admin.verb import (
    NUMBER_LIMIT,
    NoInput,
    Note,
    OperationContext,
    list_document,
    verb,
)
from gateway.control.override_changes import OverrideAuthor
from gateway.followers import FOLLOW_S
from gateway.policies.sets import examine_set

LISTED, LISTED_MOST = 20, 100

_Policies = Annotated[
    str, msgspec.Meta(description="YAML with `policies`, as a configuration file has them")
]
Name = Annotated[
    str, msgspec.Meta(max_length=200, description="what to call the set in what is told of it")
]
_Follows = Annotated[
    int,
    msgspec.Meta(
        ge=0,
        le=NUMBER_LIMIT,
        description="the set that its author saw in force; another by now is a 409",
    ),
]


_Set = Annotated[
    int, msgspec.Meta(ge=0, le=NUMBER_LIMIT, description="of the history; default: the last")
]


class JudgePoliciesInput(msgspec.Struct, forbid_unknown_fields=True):
    policies: _Policies
    name: Name = "the set"


class ApplyPoliciesInput(msgspec.Struct, forbid_unknown_fields=True):
    policies: _Policies
    note: Note | None = None
    follows: _Follows | None = None
    name: Name = "the set"


class RollBackPoliciesInput(msgspec.Struct, forbid_unknown_fields=True):
    set: _Set | None = None
    to_file: Annotated[bool, msgspec.Meta(description="those of the configuration file")] = False
    note: Note | None = None
    follows: _Follows | None = None
    look: Annotated[bool, msgspec.Meta(description="only say what would change")] = False


class PolicyHistoryInput(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=LISTED_MOST)] = LISTED


@verb("GET /policies", POLICIES, "policy show", "The policies in force, and since when", NoInput)
def policies_show(place: OperationContext, _: NoInput) -> dict[str, Any]:
    document, stored, rules = policy_changes.policies_document(place.ledger, place.settings)
    stands = stored is not None and stored.document is not None and rules.fault is None
    source = "the ledger" if stands else policy_changes.FILE
    promises = [
        {
            "policy": policy.name,
            **policy.slo.model_dump(include={"ttft_ms", "tpot_ms", "attainment"}),
        }
        for policy in rules.settings.policies
        if policy.slo.ttft_ms is not None or policy.slo.tpot_ms is not None
    ]
    return {**document, "fault": rules.fault, "source": source, "promises": promises}


@verb(
    "POST /policies/check",
    POLICIES,
    "policy check",
    "Every fault of a set; puts nothing in force",
    JudgePoliciesInput,
)
def policies_check(place: OperationContext, given: JudgePoliciesInput) -> dict[str, Any]:
    from gateway.config.surroundings import (  # noqa: PLC0415  (a fiftieth of a start)
        names_of_keys,
        steps_of_pools,
    )

    known = names_of_keys(place.settings, os.environ)
    steps = steps_of_pools(place.settings, os.environ)
    return policy_changes.check_document(
        examine_set(given.policies, place.settings, given.name, known, steps)
    )


@verb(
    "POST /policies/diff",
    POLICIES,
    "policy diff",
    "What a set would change, line by line",
    JudgePoliciesInput,
)
def policies_diff(place: OperationContext, given: JudgePoliciesInput) -> dict[str, Any]:
    change = policy_changes.parse_change(given.policies, place.settings, given.name)
    return {"changes": policy_changes.diff_lines(place.ledger, place.settings, change.new)}


@verb(
    "GET /policies/history",
    POLICIES,
    "policy history",
    "Which sets were put in force, when and by whom, the newest first",
    PolicyHistoryInput,
)
def policies_history(place: OperationContext, given: PolicyHistoryInput) -> dict[str, Any]:
    return list_document(policy_changes.policy_history(place.ledger, place.settings, given.limit))


@verb(
    "POST /policies/apply",
    APPLY_POLICIES,
    "policy apply",
    f"Put a set in force; gateways follow within {FOLLOW_S:g} s",
    ApplyPoliciesInput,
)
def policies_apply(place: OperationContext, given: ApplyPoliciesInput) -> dict[str, Any]:
    change = policy_changes.parse_change(given.policies, place.settings, given.name)
    return _put(place, change, given.note, given.follows)


@verb(
    "POST /policies/rollback",
    APPLY_POLICIES,
    "policy rollback",
    "Put an earlier set in force again, as a new entry of the history",
    RollBackPoliciesInput,
)
def policies_rollback(place: OperationContext, given: RollBackPoliciesInput) -> dict[str, Any]:
    change = policy_changes.previous_policies(
        place.ledger, place.settings, given.set, to_file=given.to_file
    )
    if given.look:
        lines = policy_changes.diff_lines(place.ledger, place.settings, change.new)
        return _change_document(policy_changes.newest_number(place.ledger), lines, change, place)
    return _put(place, change, given.note, given.follows)


def _put(
    place: OperationContext,
    change: policy_changes.PolicySetChange,
    note: str | None,
    follows: int | None,
) -> dict[str, Any]:
    lines = policy_changes.diff_lines(place.ledger, place.settings, change.new)
    number = policy_changes.newest_number(place.ledger)
    if lines:
        author = OverrideAuthor(place.by, note, place.now_us)
        number = policy_changes.activate_policies(place.ledger, change, author, follows=follows)
    return _change_document(number, lines, change, place)


def _change_document(
    number: int, lines: list[str], change: policy_changes.PolicySetChange, place: OperationContext
) -> dict[str, Any]:
    return {"set": number, "changes": lines, "version": version(change.new), "by": place.by}


VERBS = (
    policies_show,
    policies_check,
    policies_diff,
    policies_history,
    policies_apply,
    policies_rollback,
)
