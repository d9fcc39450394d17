"""Operations of `breakeven target` and `breakeven route`: overrides of the policies."""

from typing import Annotated, Any, Literal

import msgspec

from gateway.auth import APPLY, OPERATIONS
from gateway.control import override_changes as verbs
from gateway.control.admin.verb import NoInput, Note, OperationContext, list_document, verb
from gateway.followers import FOLLOW_S
from gateway.policies.overrides import describe_end
from ledger.overrides import Override

_Target = Annotated[
    str, msgspec.Meta(description="`pool:NAME`, `pool:NAME/0`, a provider, or its model")
]
_Lasts = Annotated[str, msgspec.Meta(description="how long: `90s`, `30m`, `2h`, `7d`")]
_Model = Annotated[str, msgspec.Meta(description="this model alone; default: all")]


class DisableTargetInput(msgspec.Struct, forbid_unknown_fields=True):
    target: _Target
    lasts: _Lasts | None = None
    note: Note | None = None


class EnableTargetInput(msgspec.Struct, forbid_unknown_fields=True):
    target: _Target
    note: Note | None = None


class ForceRouteInput(msgspec.Struct, forbid_unknown_fields=True):
    to: Annotated[
        Literal["own", "api"], msgspec.Meta(description="own: no API; api: no own engine")
    ]
    model: _Model | None = None
    lasts: _Lasts | None = None
    note: Note | None = None


class ReleaseRouteInput(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model | None = None
    note: Note | None = None


def author(
    place: OperationContext, note: str | None, lasts: str | None = None
) -> verbs.OverrideAuthor:
    until_us = None if lasts is None else place.now_us + verbs.span_us(lasts)
    return verbs.OverrideAuthor(place.by, note, place.now_us, until_us)


def document(override: Override) -> dict[str, Any]:
    kind, _, name = override.subject.partition(":")
    return {
        kind: name,
        "says": override.says,
        "until": describe_end(override).removeprefix(" until ") or None,
        "by": override.actor,
        "note": override.note,
        "number": override.number,
    }


@verb(
    "GET /targets",
    OPERATIONS,
    "target list",
    "Every name that can be disabled, and what operators hold over policies",
    NoInput,
)
def targets_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    stands = verbs.overrides_in_force(place.ledger, place.now_us)
    return {
        "targets": verbs.target_names(place.settings),
        "overrides": [document(stand) for stand in stands],
        "unserved": verbs.unserved_models(place.settings, stands),
    }


@verb(
    "GET /routes",
    OPERATIONS,
    "route list",
    "What operators hold over policies at this moment",
    NoInput,
)
def routes_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return list_document(
        [document(override) for override in verbs.overrides_in_force(place.ledger, place.now_us)]
    )


@verb(
    "POST /targets/disable",
    OPERATIONS + APPLY,
    "target disable",
    f"Send no new request to a target; gateways follow within {FOLLOW_S:g} s",
    DisableTargetInput,
)
def targets_disable(place: OperationContext, given: DisableTargetInput) -> dict[str, Any]:
    by = author(place, given.note, given.lasts)
    return _overrides_document(
        place, [verbs.disable(place.ledger, place.settings, given.target, by)]
    )


@verb(
    "POST /targets/enable",
    OPERATIONS + APPLY,
    "target enable",
    "Let requests go to a target again",
    EnableTargetInput,
)
def targets_enable(place: OperationContext, given: EnableTargetInput) -> dict[str, Any]:
    return _overrides_document(
        place, verbs.enable(place.ledger, given.target, author(place, given.note))
    )


@verb(
    "POST /routes/force",
    OPERATIONS + APPLY,
    "route force",
    "Send requests to own engines alone, or to APIs alone",
    ForceRouteInput,
)
def routes_force(place: OperationContext, given: ForceRouteInput) -> dict[str, Any]:
    by = author(place, given.note, given.lasts)
    return _overrides_document(
        place, [verbs.force(place.ledger, place.settings, given.to, given.model, by)]
    )


@verb(
    "POST /routes/release",
    OPERATIONS + APPLY,
    "route release",
    "Let policies decide again",
    ReleaseRouteInput,
)
def routes_release(place: OperationContext, given: ReleaseRouteInput) -> dict[str, Any]:
    by = author(place, given.note)
    return _overrides_document(
        place, [verbs.release(place.ledger, place.settings, given.model, by)]
    )


def _overrides_document(place: OperationContext, said: list[Override]) -> dict[str, Any]:
    """Return the overrides, and the models that are left without a target."""
    left = verbs.unserved_models(
        place.settings, verbs.overrides_in_force(place.ledger, place.now_us)
    )
    return {"overrides": [document(line) for line in said], "unserved": left}


VERBS = (targets_list, targets_disable, targets_enable, routes_list, routes_force, routes_release)
