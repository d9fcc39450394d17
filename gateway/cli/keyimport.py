"""Command `breakeven keys import`: keys, teams, budgets and spend of a LiteLLM proxy."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from gateway.cli.admin_backend import By, Why
from gateway.cli.config import Config, ledger_engine, load_known_or_fail
from gateway.cli.configuration import merge_notes, note_line
from gateway.cli.output import AsJson, emit, fail, table, writable
from gateway.clock import Clock
from gateway.config.litellm_notes import ImportLoss
from gateway.control.litellm.database_import import (
    KeysResult,
    SourceSurvey,
    import_history,
    import_keys,
    survey_source,
)
from gateway.control.litellm.source_database import SourceDatabase, SourceError
from gateway.control.litellm.spend_import import SpendResult
from gateway.control.os_user import os_user
from ledger.identity.keychanges import ChangeAuthor
from ledger.identity.keys import load_pepper
from ledger.money import usd_exact

HEAD = "# Budgets and limits of a LiteLLM proxy's keys, teams, users and organizations.\n"


def import_(
    from_litellm_database: Annotated[
        str,
        typer.Option(
            envvar="LITELLM_DATABASE_URL",
            help="PostgreSQL URL of a LiteLLM proxy. It is only read; prompts are not.",
        ),
    ],
    apply: Annotated[
        bool, typer.Option("--apply", help="Write keys and spend; default: only report them.")
    ] = False,
    accept: Annotated[
        list[ImportLoss] | None, typer.Option(help="Accept this loss; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write `budgets` and `limits` for the configuration to this new file."),
    ] = None,
    spend: Annotated[
        bool, typer.Option(help="Import its spend by day, outside of the ledger's postings.")
    ] = True,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Import keys and spend from a LiteLLM proxy's database.

    Its tokens stay valid. What changes money, access or checks is an error: nothing is written
    unless accepted.
    """
    settings = load_known_or_fail(config)
    writable(out)
    if out is not None and out.exists():
        fail(f"the file {out} exists: name a new file for budgets and limits")
    now_us = Clock().wall_us()
    author = ChangeAuthor(by or os_user(), note or "imported from LiteLLM", now_us)
    with ledger_engine(settings) as ledger:
        pepper = load_pepper(settings.state)
        try:
            source = SourceDatabase(from_litellm_database)
            survey = survey_source(source, pepper, now_us)
            notes = merge_notes(survey.plan.notes, frozenset(accept or ()))
            fails = survey.fails(frozenset(accept or ()))
            if fails or not apply:
                _tell(survey, notes, None, None, as_json=as_json)
                raise typer.Exit(1 if fails else 0)
            if survey.plan.budgets or survey.plan.limits:
                _write_limits(survey, out)
            keys = import_keys(ledger, survey.plan, pepper, author)
            spent = None
            if spend:
                spent = import_history(source, ledger, survey.plan, pepper, lambda _: None)
        except SourceError as error:
            fail(str(error))
        source.close()
    _tell(survey, notes, keys, spent, as_json=as_json)


def _write_limits(survey: SourceSurvey, out: Path | None) -> None:
    plan = survey.plan
    if out is None:
        count = len(plan.budgets) + len(plan.limits)
        fail(f"there are {count} budgets and limits: name a file for them: --out FILE")
    document = {"budgets": plan.budgets, "limits": plan.limits}
    kept = {name: value for name, value in document.items() if value}
    out.write_text(HEAD + yaml.safe_dump(kept, sort_keys=False))


def _tell(
    survey: SourceSurvey,
    notes: list[dict[str, Any]],
    keys: KeysResult | None,
    spent: SpendResult | None,
    *,
    as_json: bool,
) -> None:
    plan = survey.plan
    left_out = plan.left_out if keys is None else keys.left_out
    told: dict[str, Any] = {
        "applied": keys is not None,
        "keys": len(plan.keys), "left_out": [entry._asdict() for entry in left_out],
        "teams": len(plan.teams), "organizations": len(plan.organisations),
        "users": len(plan.users), "budgets": len(plan.budgets), "limits": len(plan.limits),
        "days": survey.days, "days_by_daily_sums": survey.daily_days,
        "requests": survey.requests, "notes": notes,
    }  # fmt: skip
    if keys is not None:
        told |= {"keys_made": keys.made, "keys_known": keys.known}
    if spent is not None:
        told |= {
            "days_stored": spent.days, "days_known": spent.known,
            "spend_usd": usd_exact(spent.sums.spend_pusd),
        }  # fmt: skip
    names = [name for name, value in told.items() if isinstance(value, int | str)]
    rows = [[name.replace("_", " "), f"{told[name]}"] for name in names]
    rows += [[f"left out: {entry.name}", entry.why] for entry in left_out]
    emit(told, as_json=as_json, show=lambda to: to.print(table("Import", ("what", "found"), rows)))
    if not as_json:
        for entry in notes:
            typer.echo(note_line(entry), err=True)
