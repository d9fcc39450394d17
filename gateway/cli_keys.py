"""`breakeven keys`: make, list and revoke the keys that applications use."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.cli_config import Config, ledger_engine, load_or_fail
from gateway.cli_output import AsJson, emit, fail, table
from gateway.clock import Clock
from gateway.roles import ROLES, Role, Scope, role_of
from gateway.settings import Settings, resolve_model
from ledger.identity import IdentityError, KeySpec, create_key, load_pepper, revoke_key
from ledger.orm_identity import Key

app = typer.Typer(help="Keys that applications authenticate with.", no_args_is_help=True)
US_PER_S = 1_000_000


@app.command()
def create(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    team: Annotated[str, typer.Option(help="Team that pays; made when missing.")] = "default",
    org: Annotated[str, typer.Option(help="Organisation of the team.")] = "default",
    user: Annotated[str | None, typer.Option(help="User of the key.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Allow only this model, or all of `openai/*`; may be repeated."),
    ] = None,
    internal_only: Annotated[
        bool, typer.Option(help="Requests of this key never leave the network.")
    ] = False,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="What the key may do; may be repeated. inference: ask models (the default); "
            "usage: read what its team used and paid; usage:all: the same of every team; "
            "policies: read and judge sets of policies; policies:apply: put them in force; "
            "and so with the rest."
        ),
    ] = None,
    role: Annotated[
        Role | None, typer.Option(help="All scopes of a role, instead of single ones.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="`NAME=VALUE` on every attempt, for budgets on it; may be repeated."),
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Expires after this many days.")] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Make a key. Its token is shown once; only a hash is stored."""
    settings = load_or_fail(config)
    _refuse_unknown(settings, model or [])
    if role is not None and scope:
        fail("--role or --scope, not both: a role is a set of scopes")
    now_us = Clock().wall_us()
    spec = KeySpec(
        name=name,
        team=team,
        org=org,
        user=user,
        scopes=tuple(sorted(ROLES[role]) if role else scope or [Scope.INFERENCE]),
        models=tuple(model) if model else None,
        residency="internal_only" if internal_only else "any",
        tags=tuple(_tag(text) for text in tag or ()),
        expires_us=None
        if days is None
        else now_us + int(timedelta(days=days).total_seconds()) * US_PER_S,
    )
    try:
        with ledger_engine(settings) as engine, Session(engine) as session, session.begin():
            pepper = load_pepper(settings.state.resolve())
            made = create_key(session, spec, pepper=pepper, now_us=now_us)
    except IdentityError as error:
        fail(str(error))
    emit(
        {"key_id": made.key_id, "token": made.token, "team": team, "org": org},
        as_json=as_json,
        show=lambda out: out.print(
            f"{made.token}\n\nKey {made.key_id} of team {team}. Store the token: "
            "it is not shown again."
        ),
    )


@app.command("list")
def list_keys(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List all keys; tokens are not stored and cannot be shown."""
    with ledger_engine(load_or_fail(config)) as engine, Session(engine) as session:
        keys = list(session.scalars(select(Key).order_by(Key.created_us)))
    now_us = Clock().wall_us()
    rows: list[dict[str, Any]] = [
        {
            "key_id": key.id,
            "name": key.name,
            "org": key.org_id,
            "team": key.team_id,
            "user": key.user_id,
            "scopes": key.scopes,
            "role": role_of(key.scopes),
            "models": key.models,
            "state": _state(key, now_us),
            "created": _day(key.created_us),
            "expires": None if key.expires_us is None else _day(key.expires_us),
        }
        for key in keys
    ]
    columns = ("=key_id", "name", "org", "team", "scopes", "=state", "=created", "=expires")
    shown = [{**row, "scopes": row["role"] or " ".join(row["scopes"])} for row in rows]
    cells = [[str(row[column.lstrip("=")] or "-") for column in columns] for row in shown]
    emit(rows, as_json=as_json, show=lambda out: out.print(table("Keys", columns, cells)))


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="As `keys list` shows it.")],
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Revoke a key: every worker refuses it within a second, and nothing brings it back."""
    settings = load_or_fail(config)
    try:
        with ledger_engine(settings) as engine, Session(engine) as session, session.begin():
            revoke_key(session, key_id, now_us=Clock().wall_us())
    except IdentityError as error:
        fail(str(error))
    emit(
        {"key_id": key_id, "state": "revoked"},
        as_json=as_json,
        show=lambda out: out.print(f"Key {key_id} is revoked."),
    )


def _refuse_unknown(settings: Settings, models: list[str]) -> None:
    """A key for a model that nobody has would be refused with every request."""
    for name in models:
        if name not in settings.models and resolve_model(settings, name) is None:
            known = ", ".join(f"`{one}`" for one in settings.models) or "none"
            fail(f"--model: there is no model named `{name}`; the configuration has {known}")


def _tag(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        fail(f"--tag: `{text}` is no `NAME=VALUE`")
    return name, value


def _state(key: Key, now_us: int) -> str:
    if key.revoked_us is not None:
        return "revoked"
    return "expired" if key.expires_us is not None and key.expires_us <= now_us else "active"


def _day(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / US_PER_S, UTC).date().isoformat()
