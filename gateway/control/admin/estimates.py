"""The verbs of `breakeven estimates`: what was learned of texts, and how it is forgotten."""

from contextlib import suppress
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, OPERATIONS
from gateway.config.settings import resolve_model
from gateway.control.admin.overrides import author
from gateway.control.admin.policies import Note
from gateway.control.admin.verb import OperationContext, OperationRefused, list_document, verb
from gateway.control.estimate_resets import store_reset
from gateway.control.override_changes import OverrideError
from gateway.fleet.estimate_table import ESTIMATES_FILE, EstimateTable, KnownRatio
from gateway.followers import FOLLOW_S

_Model = Annotated[str, msgspec.Meta(description="this model alone; default: all")]
_Team = Annotated[str, msgspec.Meta(description="this team alone; default: all")]


class ShowEstimatesInput(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model | None = None
    team: _Team | None = None


class ResetEstimatesInput(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model | None = None
    team: _Team | None = None
    note: Note | None = None


@verb(
    "GET /estimates",
    OPERATIONS,
    "estimates show",
    "Bytes per token as this host has learned them, by model and team",
    ShowEstimatesInput,
)
def estimates_show(place: OperationContext, given: ShowEstimatesInput) -> dict[str, Any]:
    model = _logical(place, given.model)
    return list_document([_document(known) for known in _known(place, model, given.team)])


@verb(
    "POST /estimates/reset",
    OPERATIONS + APPLY,
    "estimates reset",
    f"Forget what was learned of prompts and output lengths; gateways follow within {FOLLOW_S:g} s",
    ResetEstimatesInput,
)
def estimates_reset(place: OperationContext, given: ResetEstimatesInput) -> dict[str, Any]:
    model, keys = _logical(place, given.model), None
    with suppress(OverrideError):  # no gateway runs here: those that start, and others, follow
        keys = len(_known(place, model, given.team))
    said = store_reset(place.ledger, author(place, given.note), model=model, team=given.team)
    return {
        "model": model,
        "team": given.team,
        "keys": keys,
        "by": said.actor,
        "note": said.note,
        "number": said.number,
    }


def _known(place: OperationContext, model: str | None, team: str | None) -> list[KnownRatio]:
    """The keys of this host's table that are meant. Raises `OverrideError` where none runs."""
    with place.engines() as host:
        table = EstimateTable(host.runtime.run_dir / ESTIMATES_FILE)
        try:
            every = table.known()
        finally:
            table.close()
    return [known for known in every if model in (None, known.model) and team in (None, known.team)]


def _document(known: KnownRatio) -> dict[str, Any]:
    return {
        "model": known.model,
        "team": known.team,
        "bytes_per_token": round(known.bytes_per_token, 3),
        "template_tokens": known.template_tokens,
        "observations": known.observations,
        "seen_us": round(known.seen_s * 1e6),
    }


def _logical(place: OperationContext, name: str | None) -> str | None:
    """The model that the name means: estimates are kept by logical models."""
    if name is None:
        return None
    found = resolve_model(place.settings, name)
    if found is None:
        words = f"there is no model named `{name}`; `breakeven check` lists them"
        raise OperationRefused(words, param="model")
    return found[0]


VERBS = (estimates_show, estimates_reset)
