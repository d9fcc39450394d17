"""`breakeven policy`: why a request went where it went, or would go; which sets are in force."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from sqlalchemy import Engine, select

from gateway.cli import policysets, simulate
from gateway.cli.books import ledger_if_any, prices_of
from gateway.cli.config import Config, ledger_reader, load_or_fail
from gateway.cli.output import AsJson, emit, fail
from gateway.decisions.again import again
from gateway.decisions.hypothetical import Question, explain
from ledger.orm.books import Attempt, AttemptDecision
from ledger.reports.waterfall import lines as drawn
from ledger.reports.waterfall import waterfall
from router.explain import as_dict, as_lines, unpack
from router.packed import NUMBERS

app = typer.Typer(help="Routing policies: explain, change, take back.", no_args_is_help=True)
for command in (
    policysets.show, policysets.check, policysets.diff, policysets.apply,
    policysets.history, policysets.rollback, simulate.simulate,
):  # fmt: skip
    app.command()(command)


@app.command("explain")
def explain_command(
    request_id: Annotated[
        str | None, typer.Argument(help="A past request, as its `x-request-id` named it.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Or: a request for this model.")] = None,
    team: Annotated[str, typer.Option(help="asked by this team")] = "default",
    prompt_tokens: Annotated[int, typer.Option(min=1, help="with this many tokens")] = 500,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="and at most this answer.")] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show every candidate with its reason and numbers, for a past request or a supposed one."""
    settings = load_or_fail(config)
    if request_id is not None:
        with ledger_reader(settings) as ledger:
            found = _recorded(ledger, request_id)
        emit(
            found["json"],
            as_json=as_json,
            show=lambda out: out.print("\n".join(found["lines"]), markup=False),
        )
        return
    if model is None:
        fail("name a request id, or a model with --model")
    question = Question(model, team, prompt_tokens, max_tokens)
    with ledger_if_any(settings) as books:
        decision = explain(settings, question, books, prices_of(settings, books))
    if decision is None:
        fail(f"there is no model named `{model}`; `breakeven check` lists them")
    emit(
        as_dict(decision),
        as_json=as_json,
        show=lambda out: out.print("\n".join(as_lines(decision)), markup=False),
    )


def _recorded(engine: Engine, request_id: str) -> dict[str, Any]:
    """Every attempt of a request with the decision that made it."""
    query = (
        select(
            Attempt.attempt_id,
            Attempt.target,
            Attempt.status,
            AttemptDecision.decision,
            AttemptDecision.inputs,
            AttemptDecision.shadow_policy,
            AttemptDecision.shadow_target,
            AttemptDecision.shadow_reason,
        )
        .outerjoin(AttemptDecision, AttemptDecision.attempt_id == Attempt.attempt_id)
        .where(Attempt.request_id == request_id)
        .order_by(Attempt.attempt_no)
    )
    with engine.connect() as connection:
        rows = connection.execute(query).all()
        tries = waterfall(connection, request_id)
    if not rows:
        fail(f"the ledger has no request `{request_id}` (its rows arrive within a second)")
    documents, lines = [], []
    for attempt_id, target, status, blob, inputs, *shadow in rows:
        lines.append(f"{attempt_id} at {target}: {status or 'open'}")
        document: dict[str, Any] = {"attempt_id": attempt_id, "target": target, "status": status}
        if blob:
            try:
                recorded = unpack(msgspec.msgpack.decode(blob))
            except ValueError as error:  # another release wrote it
                lines.append(f"  {error}")
            else:
                document["decision"] = recorded
                lines += [f"  {line}" for line in _lines(recorded)]
            replayed, told = _again(inputs, blob)
            document["again"] = replayed
            lines += [f"  {line}" for line in told]
        policy, would, why = shadow
        if policy is not None and why is not None:
            document["shadow"] = {"policy": policy, "target": would, "reason": why}
            lines.append(_shadow_line(policy, would, why))
        documents.append(document)
    for document, one in zip(documents, tries, strict=True):
        document["waterfall"] = [asdict(span) for span in one.spans]
        document["warning"] = one.warning
    return {"json": documents, "lines": [*lines, "", "where its time went:", *drawn(tries)]}


def _again(inputs: bytes | None, blob: bytes) -> tuple[dict[str, Any] | None, list[str]]:
    """The decision made again from what was kept of its inputs."""
    if not inputs:
        return None, ["its inputs were not kept: budgets or a batch changed it, or it was too long"]
    try:
        found = again(inputs, blob)
    except ValueError as error:  # another release wrote it
        return None, [str(error)]
    return found.document(), found.lines()


def _shadow_line(policy: str, target: str | None, reason: str) -> str:
    would = "would have refused" if target is None else f"would have chosen {target}"
    return f"  shadow policy {policy}: {would} ({reason})"


def _lines(recorded: dict[str, Any]) -> list[str]:
    """One line per candidate: its reason, and the numbers that were looked at."""
    return [
        " ".join(
            [
                f"{candidate['name']}: {candidate['reason']}",
                *(
                    f"{name}={_plain(candidate[name])}"
                    for name in NUMBERS
                    if candidate[name] is not None
                ),
                *_kv(candidate["engine"]),
                *_cap(candidate["output_cap_tokens"]),
            ]
        )
        for candidate in recorded["candidates"]
    ]


def _plain(number: float) -> str:
    """Without an exponent, whatever its size."""
    return f"{number:.4f}".rstrip("0").rstrip(".")


def _cap(tokens: int | None) -> list[str]:
    """What was asked for where the request itself names no limit, and money does."""
    return [] if tokens is None else [f"output_cap_tokens={tokens}"]


def _kv(engine: dict[str, Any] | None) -> list[str]:
    """The KV figure of an own engine, and what it was made of."""
    if engine is None or engine["kv_free_tokens"] is None:
        return []
    made_of = f"{engine['kv_used_tokens']} used, {engine['kv_promised_tokens']} promised"
    if engine["residents"]:
        made_of += f", {len(engine['residents'])} sequences that end one by one"
    free, promise = engine["kv_free_tokens"], engine["kv_promise_tokens"]
    return [f"kv_free_tokens={free} after a promise of {promise} ({made_of})"]
