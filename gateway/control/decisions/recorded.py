"""Recorded routing of a past request: the ledger's decision for each attempt.

Each decision is repeated from its stored inputs and compared. For a refused request, the reason of
each target is returned.
"""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Engine, Row, select

from gateway.control.decisions import explanation_text
from gateway.control.decisions.decision_replay import replay_decision
from ledger.money import usd_exact, usd_text
from ledger.orm.books import AttemptDecisionRow, AttemptRow, RefusalRow
from ledger.queries.cache_hits import find_hit
from ledger.reports.waterfall import lines as drawn
from ledger.reports.waterfall import waterfall
from router.explain import unpack
from router.packed import NUMBERS


class RecordedDecision(NamedTuple):
    """A document for each attempt, and all of it as text lines."""

    attempts: list[dict[str, Any]]
    lines: list[str]


def read_recorded_decision(
    engine: Engine, request_id: str, team: str | None = None
) -> RecordedDecision | None:
    """Return the decisions of a request; `None` if the ledger has none for this team."""
    query = (
        select(
            AttemptRow.attempt_id,
            AttemptRow.target,
            AttemptRow.status,
            AttemptDecisionRow.decision,
            AttemptDecisionRow.inputs,
            AttemptDecisionRow.shadow_policy,
            AttemptDecisionRow.shadow_target,
            AttemptDecisionRow.shadow_reason,
            *explanation_text.COLUMNS,
        )
        .outerjoin(AttemptDecisionRow, AttemptDecisionRow.attempt_id == AttemptRow.attempt_id)
        .where(AttemptRow.request_id == request_id)
        .order_by(AttemptRow.attempt_no)
    )
    if team is not None:
        query = query.where(AttemptRow.team_id == team)
    with engine.connect() as connection:
        rows = connection.execute(query).all()
        if not rows:
            return _read_refusal(connection, request_id, team)
        tries = waterfall(connection, request_id)
    documents, lines = [], []
    for before, row in zip([None, *rows], rows, strict=False):
        document, told = _try(row, before)
        documents.append(document)
        lines += told
    for document, try_ in zip(documents, tries, strict=True):
        document["waterfall"] = [asdict(span) for span in try_.spans]
        document["warning"] = try_.warning
    return RecordedDecision(documents, [*lines, "", "where its time went:", *drawn(tries)])


def _try(
    row: Row[*tuple[Any, ...]], before: Row[*tuple[Any, ...]] | None
) -> tuple[dict[str, Any], list[str]]:
    lines = [f"{row.attempt_id} at {row.target}: {row.status or 'open'}"]
    lines += [f"  {line}" for line in explanation_text.explain_attempt(row, before)]
    document: dict[str, Any] = {
        "attempt_id": row.attempt_id, "target": row.target, "status": row.status,
        **explanation_text.document(row),
    }  # fmt: skip
    if row.decision:
        document |= _decision(row.decision, lines)
        replayed, told = _replay_lines(row.inputs, row.decision)
        document["again"] = replayed
        lines += [f"  {line}" for line in told]
    policy, would, why = row.shadow_policy, row.shadow_target, row.shadow_reason
    if policy is not None and why is not None:
        document["shadow"] = {"policy": policy, "target": would, "reason": why}
        lines.append(_shadow_line(policy, would, why))
    return document, lines


def _read_refusal(
    connection: Connection, request_id: str, team: str | None
) -> RecordedDecision | None:
    """Return a refused request with each target's reason. Inputs are stored for attempts only."""
    query = select(RefusalRow).where(RefusalRow.request_id == request_id)
    if team is not None:
        query = query.where(RefusalRow.team_id == team)
    row = connection.execute(query.with_only_columns(*RefusalRow.__table__.columns)).one_or_none()
    if row is None:
        return _read_hit(connection, request_id, team)
    document: dict[str, Any] = {
        "attempt_id": None, "target": None, "status": "refused", "reason": row.reason,
        "http_status": row.http_status, "policy": row.policy, "scope": row.scope,
    }  # fmt: skip
    whose = "" if row.scope is None else f", {row.scope}"
    lines = [f"{request_id} refused: {row.reason} ({row.http_status}{whose}), policy {row.policy}"]
    if row.since_us is not None:
        document["budget"] = _budget(row)
        lines.append(f"  {_budget_line(row)}")
    if row.decision:
        document |= _decision(row.decision, lines)
    return RecordedDecision([document], lines)


def _read_hit(connection: Connection, request_id: str, team: str | None) -> RecordedDecision | None:
    """Return a response cache hit: the attempt that was reused, and its age."""
    row = find_hit(connection, request_id, team)
    if row is None:
        return None
    avoided = None if row.avoided_pusd is None else usd_exact(row.avoided_pusd)
    document: dict[str, Any] = {
        "attempt_id": None, "target": row.target, "status": "cache_hit", "policy": row.policy,
        "answered_by": row.answered_by, "age_us": row.age_us, "backend": row.backend,
        "avoided_usd": avoided,
    }  # fmt: skip
    worth = "its price is not known" if row.avoided_pusd is None else usd_text(row.avoided_pusd)
    line = (
        f"{request_id} from the response cache: the answer of {row.target} to {row.answered_by}, "
        f"{row.age_us / 1e6:.0f} s old; nobody was asked, and nothing was planned"
    )
    paid = f"  that answer was booked at {worth}; this one costs nothing"
    return RecordedDecision([document], [line, paid])


def _budget(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "scope": row.scope,
        **{
            f"{name}_usd": None if pusd is None else usd_exact(pusd)
            for name, pusd in (
                ("bound", row.bound_pusd), ("room", row.room_pusd), ("limit", row.limit_pusd),
            )
        },
        "since_us": row.since_us,
        "until_us": row.until_us,
    }  # fmt: skip


def _budget_line(row: Row[*tuple[Any, ...]]) -> str:
    """Return the most that the attempt could cost, and the money that was left."""
    wanted = "its price is not known" if row.bound_pusd is None else (
        f"it may cost up to {usd_text(row.bound_pusd)}"
    )  # fmt: skip
    limit = "" if row.limit_pusd is None else f" of {usd_text(row.limit_pusd)}"
    since, until = (f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M}"
                    for at_us in (row.since_us, row.until_us))  # fmt: skip
    return (
        f"budget {row.scope}: {wanted}, {usd_text(row.room_pusd)}{limit} was left "
        f"(since {since}, until {until} UTC)"
    )


def _decision(blob: bytes, lines: list[str]) -> dict[str, Any]:
    try:
        found = unpack(msgspec.msgpack.decode(blob))
    except ValueError as error:  # another release wrote it
        lines.append(f"  {error}")
        return {}
    lines += [f"  {line}" for line in _lines(found)]
    return {"decision": found}


def _replay_lines(inputs: bytes | None, blob: bytes) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the decision repeated from its stored inputs, and text lines."""
    if not inputs:
        return None, ["its inputs were not kept: budgets or a batch changed it, or it was too long"]
    try:
        found = replay_decision(inputs, blob)
    except ValueError as error:  # another release wrote it
        return None, [str(error)]
    return found.document(), found.lines()


def _shadow_line(policy: str, target: str | None, reason: str) -> str:
    would = "would have refused" if target is None else f"would have chosen {target}"
    return f"  shadow policy {policy}: {would} ({reason})"


def _lines(recorded: dict[str, Any]) -> list[str]:
    """Return one line per candidate with its reason and numbers."""
    return [
        *_stage_lines(recorded.get("stage")),
        *_candidate_lines(recorded),
    ]


def _stage_lines(stage: dict[str, Any] | None) -> list[str]:
    """Return the stage that decided, and the candidates of earlier stages not tried."""
    if stage is None:
        return []
    first = f"stage {stage['number']} of {stage['count']}"
    waited = "" if stage["number"] == 1 else f", asked after {stage['after'].replace('+', ' or ')}"
    earlier = [f"before it {who['name']}: {who['reason']}" for who in stage["earlier"]]
    return [first + waited, *earlier]


def _candidate_lines(recorded: dict[str, Any]) -> list[str]:
    return [
        " ".join(
            [
                f"{candidate['name']}: {candidate['reason']}",
                *(
                    _figure_text(name, candidate[name])
                    for name in NUMBERS
                    if candidate[name] is not None
                ),
                *_kv(candidate["engine"]),
                *_cap(candidate["output_cap_tokens"]),
                *_cached(candidate),
            ]
        )
        for candidate in recorded["candidates"]
    ]


def _cached(candidate: dict[str, Any]) -> list[str]:
    """Return the expected cached tokens of the prompt, and their saving there."""
    tokens, saves = candidate.get("cached_tokens"), candidate.get("cache_saves_pusd")
    if not tokens:
        return []
    return [f"cached_tokens={tokens} (which saves {usd_text(round(saves or 0))} there)"]


def _figure_text(name: str, number: float) -> str:
    """Return money in dollars, and the value of engine time in dollars per hour."""
    if name == "objective_pusd":
        return f"objective={usd_text(round(number))}"
    if name == "density_pusd_per_s":
        return f"worth_of_an_engine_hour={usd_text(round(3600 * number))}"
    return f"{name}={_plain(number)}"


def _plain(number: float) -> str:
    """Return the number without an exponent."""
    return f"{number:.4f}".rstrip("0").rstrip(".")


def _cap(tokens: int | None) -> list[str]:
    """Return the output limit set by money, if the request has none."""
    return [] if tokens is None else [f"output_cap_tokens={tokens}"]


def _kv(engine: dict[str, Any] | None) -> list[str]:
    """Return the KV ratio's components of an own engine."""
    if engine is None or engine["kv_free_tokens"] is None:
        return []
    made_of = f"{engine['kv_used_tokens']} used, {engine['kv_promised_tokens']} promised"
    if engine["residents"]:
        made_of += f", {len(engine['residents'])} sequences that end one by one"
    free, promise = engine["kv_free_tokens"], engine["kv_promise_tokens"]
    return [f"kv_free_tokens={free} after a promise of {promise} ({made_of})"]
