"""Operations of `breakeven estimates`: show learned estimates, and reset them."""

from contextlib import suppress
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, OPERATIONS
from gateway.config.faults import suggest
from gateway.config.settings import resolve_model
from gateway.control.admin.overrides import author
from gateway.control.admin.verb import Note, OperationContext, OperationRefused, list_document, verb
from gateway.control.answer_lengths import known_lengths
from gateway.control.estimate_resets import resets_of, store_reset
from gateway.control.override_changes import OverrideError
from gateway.fleet.estimate_table import ESTIMATES_FILE, EstimateTable, KnownRatio, KnownTarget
from gateway.fleet.target_stats import Latencies
from gateway.followers import FOLLOW_S
from ledger.lengths import recent_lengths
from ledger.overrides import overrides
from router.estimates import OutputLengths
from router.target_prompts import PromptOverrun

_Model = Annotated[str, msgspec.Meta(description="this model alone; default: all")]
_Target = Annotated[str, msgspec.Meta(description="this target alone; default: all")]
_Team = Annotated[str, msgspec.Meta(description="this team alone; default: all")]


class ShowEstimatesInput(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model | None = None
    team: _Team | None = None


class ShowTargetEstimatesInput(msgspec.Struct, forbid_unknown_fields=True):
    target: _Target | None = None


class ResetEstimatesInput(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model | None = None
    team: _Team | None = None
    note: Note | None = None
    target: _Target | None = None


@verb(
    "GET /estimates",
    OPERATIONS,
    "estimates show",
    "Bytes per token and lengths of answers as this host has learned them, by model and team",
    ShowEstimatesInput,
)
def estimates_show(place: OperationContext, given: ShowEstimatesInput) -> dict[str, Any]:
    model = _logical(place, given.model)
    found = _known(place, model, given.team)
    resets = resets_of(overrides(place.ledger))
    past, now_s = recent_lengths(place.ledger), place.now_us / 1e6
    lengths = known_lengths(past, now_s, resets)
    return list_document([_document(known, lengths) for known in found])


@verb(
    "GET /estimates/targets",
    OPERATIONS,
    "estimates targets",
    "Latencies, overruns and unseen output of targets as this host has learned them",
    ShowTargetEstimatesInput,
)
def estimates_targets(place: OperationContext, given: ShowTargetEstimatesInput) -> dict[str, Any]:
    return list_document(_targets(place, given.target))


@verb(
    "POST /estimates/reset",
    OPERATIONS + APPLY,
    "estimates reset",
    "Forget what was learned of a model, a team or both, of a target, or (none named) of all; "
    f"gateways follow within {FOLLOW_S:g} s",
    ResetEstimatesInput,
)
def estimates_reset(place: OperationContext, given: ResetEstimatesInput) -> dict[str, Any]:
    if given.target is not None and not given.model is given.team is None:
        words = "what is learned of a target is of no model or team: name either"
        raise OperationRefused(words, param="target")
    model, keys = _logical(place, given.model), None
    with suppress(OverrideError):  # no gateway runs here: others follow, and this one at its start
        if given.target is None:
            keys = len(_known(place, model, given.team))
        else:
            keys = len(_targets(place, given.target))
    said = store_reset(
        place.ledger, author(place, given.note), model=model, team=given.team, target=given.target
    )
    return {
        "model": model,
        "team": given.team,
        "keys": keys,
        "by": said.actor,
        "note": said.note,
        "number": said.number,
        "target": given.target,
    }


def _known(place: OperationContext, model: str | None, team: str | None) -> list[KnownRatio]:
    """Return the matching keys of this host's table. Raises `OverrideError` if none runs."""
    with place.engines() as host:
        table = EstimateTable(host.runtime.run_dir / ESTIMATES_FILE)
        try:
            every = table.known()
        finally:
            table.close()
    return [known for known in every if model in (None, known.model) and team in (None, known.team)]


def _targets(place: OperationContext, target: str | None) -> list[dict[str, Any]]:
    """Return learned values of targets, by name. Raises `OverrideError` where no gateway runs."""
    with place.engines() as host:
        table = EstimateTable(host.runtime.run_dir / ESTIMATES_FILE)
        try:
            every = table.known_targets()
        finally:
            table.close()
        latencies = dict(host.latencies())
    names = [*every, *(name for name, told in latencies.items() if told[-1])]
    return [
        _target_document(name, every.get(name, KnownTarget()), latencies.get(name or ""))
        for name in sorted(set(names), key=lambda name: name or "")
        if target in (None, name)
    ]


def _target_document(
    name: str | None, known: KnownTarget, latencies: Latencies | None
) -> dict[str, Any]:
    ttft_ms, _, tpot_ms, _, count = latencies or (None, 0.0, None, 0.0, 0)
    output, prompts, cached = known
    rate = None if output is None else output.tokens_per_s
    seen_s = max((row.seen_s for row in known if row is not None), default=None)
    overrun = PromptOverrun() if prompts is None else prompts.overrun
    return {
        "target": name,
        "ttft_ms": None if ttft_ms is None else round(ttft_ms, 3),
        "tpot_ms": None if tpot_ms is None else round(tpot_ms, 3),
        "latency_observations": count,
        "overrun_tokens": 0 if output is None else output.allowance_tokens,
        "tokens_per_s": None if rate is None else round(rate, 3),
        "hides_reasoning": output is not None and output.hides,
        "observations": 0 if output is None else output.observations,
        "seen_us": None if seen_s is None else round(seen_s * 1e6),
        "picture_factor": round(overrun.pictures, 3),
        "sound_factor": round(overrun.sounds, 3),
        "context_tokens": overrun.context,
        "cached_share": None if cached is None else round(cached.share, 3),
    }


def _document(known: KnownRatio, lengths: OutputLengths) -> dict[str, Any]:
    return {
        "model": known.model,
        "team": known.team,
        "bytes_per_token": round(known.row.bytes_per_token, 3),
        "template_tokens": known.row.template_tokens,
        "context_margin": round(known.row.margin, 3),
        "observations": known.row.observations,
        "seen_us": round(known.row.seen_s * 1e6),
        "output_tokens": _mean_length(known, lengths),
    }


def _mean_length(known: KnownRatio, lengths: OutputLengths) -> float | None:
    """Return the output length that a new start expects, in tokens; `None` if unknown."""
    mean = lengths.mean((known.model or "", known.team or ""))
    return None if mean is None else round(mean, 1)


def _logical(place: OperationContext, name: str | None) -> str | None:
    """Return the logical model of a name: estimates are kept by logical model."""
    if name is None:
        return None
    found = resolve_model(place.settings, name)
    if found is None:
        words = f"there is no model named `{name}`{suggest(name, place.settings.models)}"
        raise OperationRefused(words, param="model")
    return found[0]


VERBS = (estimates_show, estimates_targets, estimates_reset)
