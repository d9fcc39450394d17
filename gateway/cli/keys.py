"""Commands `breakeven keys`: create, list, rotate and revoke API keys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.admin_backend import AdminBackend, By, Why, open_writing_backend, run_change
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, fail, print_result, table
from gateway.control.admin import keys as verbs
from gateway.control.admin.gateway_address import gateway_url
from gateway.control.roles import KeyRole, KeyScope

KeyId = Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")]
Days = Annotated[
    int | None, typer.Option(min=1, help="Days until the key expires; default: never.")
]


def create(
    name: Annotated[str, typer.Option(help="Name of the key: its purpose.")],
    team: Annotated[
        str | None,
        typer.Option(
            help="Team that pays; created if missing. Default: `default`; with --gateway the team "
            "of your key."
        ),
    ] = None,
    org: Annotated[
        str | None, typer.Option(help="Organisation of the team; default: `default`.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="User that the key belongs to.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Allow only this model, or all of `openai/*`; may be repeated."),
    ] = None,
    internal_only: Annotated[
        bool, typer.Option(help="Requests of this key never leave the network.")
    ] = False,
    scope: Annotated[
        list[KeyScope] | None,
        typer.Option(
            help="What the key may do; may be repeated. inference: send requests to models "
            "(the default); "
            "usage: read what its team used and paid; usage:all: the same of every team; "
            "policies: read and judge sets of policies; policies:apply: put them in force; "
            "and so with the rest."
        ),
    ] = None,
    role: Annotated[
        KeyRole | None, typer.Option(help="All scopes of a role, instead of single ones.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="`NAME=VALUE` on every attempt, for budgets on it; may be repeated."),
    ] = None,
    days: Days = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Create a key. Its token is shown once; only a hash is stored."""
    if role is not None and scope:
        fail("use --role or --scope, not both: a role is a set of scopes")
    tags = dict(_tag(text) for text in tag or ())
    given: dict[str, Any] = {
        "name": name, "user": user, "role": role, "scopes": scope or None, "models": model or None,
        "internal_only": internal_only or None, "days": days, "note": note,
    }  # fmt: skip
    of_own_team = gateway_url() is not None and team is None and org is None and not tags
    with open_writing_backend(config, by) as desk:
        if of_own_team:
            made = desk.do(verbs.keys_create, verbs.CreateTeamKeyInput(**given))
        else:
            given |= {"team": team or "default", "org": org or "default", "tags": tags or None}
            made = desk.do(verbs.keys_create_any, verbs.CreateKeyInput(**given))
    emit(
        made,
        as_json=as_json,
        show=lambda out: out.print(
            f"{made['token']}\n\nKey {made['key_id']} of team {made['team']}. Store the token: "
            "it is not shown again."
        ),
    )


def list_keys(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List all keys; tokens are not stored and cannot be shown."""
    with open_writing_backend(config, None) as desk:
        rows = list(_all(desk))
    columns = ("=key_id", "name", "org", "team", "scopes", "=state", "=created", "=expires")
    shown = [{**row, "scopes": row["role"] or " ".join(row["scopes"])} for row in rows]
    cells = [[str(row[column.lstrip("=")] or "-") for column in columns] for row in shown]
    emit(rows, as_json=as_json, show=lambda out: out.print(table("Keys", columns, cells)))


def rotate(
    key_id: KeyId,
    overlap: Annotated[
        str, typer.Option(help="Time that the old key stays valid: 90s, 30m, 2h or 7d.")
    ] = verbs.OVERLAP,
    days: Annotated[
        int | None,
        typer.Option(min=1, help="Days until the new key expires; default: the old key's expiry."),
    ] = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Replace a key. The old key stays valid for --overlap."""
    made = run_change(
        config, by, verbs.keys_rotate, verbs.RotateKeyInput(key_id, overlap, days, note)
    )
    emit(
        made,
        as_json=as_json,
        show=lambda out: out.print(
            f"{made['token']}\n\nKey {made['key_id']} of team {made['team']}. Store the token: "
            f"it is not shown again. Key {key_id} ends on {made['until']}."
        ),
    )


def revoke(
    key_id: KeyId,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Revoke a key. Workers reject it within a second; this is permanent."""
    done = run_change(config, by, verbs.keys_revoke, verbs.RevokeKeyInput(key_id, note))
    print_result(done, f"Key {key_id} is revoked.", as_json=as_json)


def _all(desk: AdminBackend) -> Iterator[dict[str, Any]]:
    """Yield the entries of all pages of the list."""
    after = None
    while True:
        page = desk.do(verbs.keys_list, verbs.ListKeysInput(after=after))
        yield from page["data"]
        if not page["has_more"]:
            return
        after = page["last_id"]


def _tag(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        fail(f"invalid --tag `{text}`: write NAME=VALUE, for example app=web")
    return name, value
