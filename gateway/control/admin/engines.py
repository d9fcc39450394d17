"""Operations of `breakeven engine status|drain|resume|restart`, for the answering host.

A drain is an override like any other. The caller waits until an engine is empty and walks through a
pool one by one (`gateway.cli.engineops`), so that no request stays open for half an hour.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from backends.engine.chunkbudget import full_step_s, prefill_budget
from backends.stepmodel import FittedStepModel
from gateway.auth import APPLY, OPERATIONS
from gateway.config.settings import Settings
from gateway.control import override_changes as verbs
from gateway.control.admin.enginehost import EngineSnapshot
from gateway.control.admin.overrides import author
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from gateway.fleet.engine_notes import read_status_notes
from gateway.fleet.measurements import EngineMeasurement, read_measurements
from gateway.followers import FOLLOW_S
from gateway.policies.overrides import TARGET, barred
from gateway.runtime import EngineReplica
from ledger.fleet.upkeepnotes import UpkeepNote, read_notes
from ledger.overrides import Override
from ledger.reports.waterfall import is_far
from router.types import EngineState, TargetHealth

_Name = Annotated[
    str, msgspec.Meta(description="`pool:NAME/0`, or `pool:NAME` for all of its engines")
]


class EngineNameInput(msgspec.Struct, forbid_unknown_fields=True):
    engine: _Name
    note: Note | None = None


class RestartEngineInput(msgspec.Struct, forbid_unknown_fields=True):
    engine: Annotated[str, msgspec.Meta(description="`pool:NAME/0`, which is drained")]
    at_once: Annotated[
        bool, msgspec.Meta(description="although requests are under way there, which break")
    ] = False


@verb(
    "GET /engines",
    OPERATIONS,
    "engine status",
    "Every engine of the host that answers: state, what runs, what is held over it",
    NoInput,
)
def engines_status(place: OperationContext, _: NoInput) -> dict[str, Any]:
    with place.engines() as host:
        stands = verbs.overrides_in_force(place.ledger, place.now_us)
        notes, words = read_notes(host.runtime.run_dir), read_status_notes(host.runtime.run_dir)
        ttft_us, tpot_us = _promised_us(place.settings)
        measured = read_measurements(host.runtime.run_dir)
        return list_document(
            [
                _engine_entry(snapshot, stands)
                | {"reason": words.get(snapshot.seat.name)}
                | _upkeep(snapshot, notes)
                | {"measured": _measurement_document(measured.get(snapshot.seat.name))}
                | _way(host.round_trip_us(snapshot.row), ttft_us)
                | _steps(snapshot.state, tpot_us)
                for snapshot in host.every()
            ]
        )


@verb(
    "POST /engines/drain",
    OPERATIONS + APPLY,
    "engine drain",
    f"Send engines no new request; they are empty when nothing is in flight, {FOLLOW_S:g} s on",
    EngineNameInput,
)
def engines_drain(place: OperationContext, given: EngineNameInput) -> dict[str, Any]:
    with place.engines() as host:
        host.engines_named(given.engine)
        verbs.disable(place.ledger, place.settings, given.engine, author(place, given.note))
        stands = verbs.overrides_in_force(place.ledger, place.now_us)
        return list_document(
            [_engine_entry(snapshot, stands) for snapshot in host.engines_named(given.engine)]
        )


@verb(
    "POST /engines/resume",
    OPERATIONS + APPLY,
    "engine resume",
    "Let requests go to engines again",
    EngineNameInput,
)
def engines_resume(place: OperationContext, given: EngineNameInput) -> dict[str, Any]:
    verbs.enable(place.ledger, given.engine, author(place, given.note))
    return {"engine": given.engine, "drained": False}


@verb(
    "POST /engines/restart",
    OPERATIONS + APPLY,
    "engine restart",
    "Start drained engines anew",
    RestartEngineInput,
)
def engines_restart(place: OperationContext, given: RestartEngineInput) -> dict[str, Any]:
    with place.engines() as host:
        stands = verbs.overrides_in_force(place.ledger, place.now_us)
        told = read_status_notes(host.runtime.run_dir)
        for snapshot in (found := host.engines_named(given.engine)):
            if not snapshot.seat.managed:
                words = (
                    f"{snapshot.seat.name} was not started by this gateway: "
                    "restart it where it runs"
                )
                raise OperationRefused(words, param="engine")
            if snapshot.word == "stopped":  # this vLLM lacks the flags: no start can succeed
                why = told.get(snapshot.seat.name, "its host ends")
                raise OperationRefused(
                    f"engine {snapshot.seat.name} has failed and is not restarted: {why}",
                    param="engine",
                )
            if _override(snapshot.seat, stands) is None:
                raise OperationRefused(
                    f"engine {snapshot.seat.name} receives requests: drain it first with "
                    f"`breakeven engine drain {snapshot.seat.name}`",
                    param="engine",
                )
            if snapshot.in_flight and not given.at_once:
                words = (
                    f"{snapshot.seat.name} has {snapshot.in_flight} requests under way: "
                    "wait for them"
                )
                raise OperationRefused(words, param="engine")
        for engine in found:
            host.order(engine.row)
        return list_document([_engine_entry(engine, stands) for engine in found])


def _engine_entry(engine_snapshot: EngineSnapshot, stands: Sequence[Override]) -> dict[str, Any]:
    state = engine_snapshot.state
    return {
        "engine": engine_snapshot.seat.name,
        "state": engine_snapshot.word,
        "in_flight": engine_snapshot.in_flight,
        "running": state.running,
        "kv_usage": _usage(state),
        "life": engine_snapshot.life,
        "url": engine_snapshot.seat.base_url,
        "managed": engine_snapshot.seat.managed,
        "override": _override(engine_snapshot.seat, stands),
        "held": any(two.subject == TARGET + engine_snapshot.seat.name for two in stands),
    }


def _upkeep(engine_snapshot: EngineSnapshot, notes: Mapping[str, UpkeepNote]) -> dict[str, Any]:
    note = notes.get(engine_snapshot.seat.name)
    return {"upkeep": None if note is None else msgspec.to_builtins(note)}


def _measurement_document(note: EngineMeasurement | None) -> dict[str, Any] | None:
    """Return when and how its speed was measured, and what was sent for it."""
    if note is None:
        return None
    return {name: getattr(note, name) for name in note.__struct_fields__ if name != "engine"}


def _promised_us(settings: Settings) -> tuple[int | None, int | None]:
    """Return the tightest TTFT and the tightest TPOT that policies promise, in us."""
    slos = [rule.slo for rule in settings.policies]
    promised = ([slo.ttft_ms for slo in slos], [slo.tpot_ms for slo in slos])
    ttft, tpot = (min((ms for ms in some if ms is not None), default=None) for some in promised)
    return None if ttft is None else round(ttft * 1e3), None if tpot is None else round(tpot * 1e3)


def _way(round_trip_us: int | None, promised_us: int | None) -> dict[str, Any]:
    """Return the round trip, and whether it is a large part of the tightest promise."""
    return {"round_trip_us": round_trip_us, "far": is_far(round_trip_us, promised_us)}


def _steps(state: EngineState, promised_us: int | None) -> dict[str, Any]:
    """Return the time of a full step and, if it breaks the TPOT, a budget that does not."""
    known, pace = state.step, state.step_feedback
    if known is None:
        return {"full_step_us": None, "breaks_tpot": None, "prefill_budget_advised": None}
    step = FittedStepModel(
        *(pace * s for s in (known.a_s, known.b_s, known.c_s, known.d_s, known.t0_s))
    )
    full_us, advised = round(1e6 * full_step_s(step, state.prefill_budget_tokens)), None
    breaks = promised_us is not None and full_us > promised_us
    if promised_us is not None and breaks:
        advised = prefill_budget(
            step, tpot_s=promised_us / 1e6, kv_tokens=state.kv_capacity_tokens,
            max_sequences=state.max_num_seqs,
        )  # fmt: skip
    return {"full_step_us": full_us, "breaks_tpot": breaks, "prefill_budget_advised": advised}


def _usage(state: EngineState) -> float | None:
    if state.health is not TargetHealth.HEALTHY or state.kv_capacity_tokens <= 0:
        return None
    return state.kv_used_tokens / state.kv_capacity_tokens


def _override(seat: EngineReplica, stands: Sequence[Override]) -> str | None:
    """Return the reason that keeps every model's requests away, if there is one."""
    found = barred(stands, "", [verbs.TargetName(seat.name, own=True)]).get(seat.name)
    return None if found is None else found[1]


VERBS = (engines_status, engines_drain, engines_resume, engines_restart)
