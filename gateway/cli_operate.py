"""`breakeven target` and `breakeven route`: what an operator holds over every policy, for a while.

It is kept in the ledger with who, when and why; every running gateway follows within 2 s, and ends
it by itself when its time is over. Requests under way go on where they are.
"""

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway import overrideverbs as verbs
from gateway.cli_config import Config, ledger_engine, ledger_reader, load_or_fail
from gateway.cli_output import AsJson, emit, fail, table
from gateway.clock import Clock
from gateway.following import FOLLOW_S
from gateway.overrides import MODEL, TARGET, until
from gateway.settings import Settings
from ledger.overrides import EVERY, Override

target = typer.Typer(help="Targets: take one out, put it back.", no_args_is_help=True)
route = typer.Typer(help="Routes: own engines alone, or APIs alone.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="pool:NAME, pool:NAME/0, a provider, or its model.")]
For = Annotated[str | None, typer.Option("--for", help="How long: 90s, 30m, 2h, 7d.")]
By = Annotated[str | None, typer.Option(help="Who does it; default: the user's name.")]
Why = Annotated[str | None, typer.Option("--note", help="Why, for whoever reads it later.")]
OfModel = Annotated[str | None, typer.Option("--model", help="This model; default: all.")]


class Where(StrEnum):
    OWN = "own"
    API = "api"


@target.command("list")
def list_targets(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Every name that can be disabled, and what operators hold over policies at this moment."""
    settings = load_or_fail(config)
    with ledger_reader(settings) as engine:
        stands = verbs.in_force(engine, Clock().wall_us())
    names = verbs.target_names(settings)
    result = {
        "targets": names,
        "overrides": [as_dict(one) for one in stands],
        "unserved": verbs.unserved(settings, stands),
    }
    emit(result, as_json=as_json, show=lambda out: _print_list(out, names, stands))


@target.command()
def disable(
    name: Name,
    lasts: For = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """No new request goes there; those under way end where they are."""
    settings = load_or_fail(config)
    with _saying(settings, as_json=as_json) as (engine, said):
        said.append(verbs.disable(engine, settings, name, author_of(by, note, lasts)))


@target.command()
def enable(
    name: Name,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Requests may go there again."""
    settings = load_or_fail(config)
    with _saying(settings, as_json=as_json) as (engine, said):
        said.extend(verbs.enable(engine, name, author_of(by, note)))


@route.command()
def force(
    where: Annotated[Where, typer.Argument(help="own: no API; api: no own engine.")],
    model: OfModel = None,
    lasts: For = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Send requests to own engines alone, or to APIs alone; what is internal-only stays inside."""
    settings = load_or_fail(config)
    with _saying(settings, as_json=as_json) as (engine, said):
        author = author_of(by, note, lasts)
        said.append(verbs.force(engine, settings, where.value, model, author))


@route.command()
def release(
    model: OfModel = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Let policies decide again."""
    settings = load_or_fail(config)
    with _saying(settings, as_json=as_json) as (engine, said):
        said.append(verbs.release(engine, settings, model, author_of(by, note)))


@route.command("list")
def list_routes(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """What operators hold over policies at this moment."""
    settings = load_or_fail(config)
    with ledger_reader(settings) as engine:
        stands = verbs.in_force(engine, Clock().wall_us())
    emit(
        [as_dict(one) for one in stands], as_json=as_json,
        show=lambda out: out.print(_table(stands) if stands else "Policies alone decide."),
    )  # fmt: skip


def as_dict(one: Override) -> dict[str, Any]:
    kind, _, name = one.subject.partition(":")
    return {
        kind: name,
        "says": one.says,
        "until": until(one).removeprefix(" until ") or None,
        "by": one.actor,
        "note": one.note,
        "number": one.number,
    }


@contextmanager
def _saying(settings: Settings, *, as_json: bool) -> Iterator[tuple[Any, list[Override]]]:
    """The ledger and a list for what is said; then it is told, and whom it leaves without."""
    said: list[Override] = []
    with ledger_engine(settings) as engine:
        try:
            yield engine, said
        except verbs.Impossible as error:
            fail(str(error))
        left = verbs.unserved(settings, verbs.in_force(engine, Clock().wall_us()))
    for name in left:
        typer.echo(f"`{name}` has no target left: its requests are refused meanwhile", err=True)
    words = "\n".join(f"{_subject(one)}: {one.says}{until(one)}." for one in said)
    emit(
        {"overrides": [as_dict(one) for one in said], "unserved": left}, as_json=as_json,
        show=lambda out: out.print(
            f"{words}\nRunning gateways follow within {FOLLOW_S:g} s.", markup=False
        ),
    )  # fmt: skip


def author_of(by: str | None, note: str | None, lasts: str | None = None) -> verbs.Author:
    at_us = Clock().wall_us()
    until_us = None if lasts is None else at_us + verbs.span_us(lasts)
    return verbs.Author(by or getpass.getuser(), note, at_us, until_us)


def _print_list(out: Console, names: Sequence[str], stands: Sequence[Override]) -> None:
    for name in names:
        out.print(name, markup=False)
    out.print()
    out.print(_table(stands) if stands else "Nothing is held over the policies.")


def _table(stands: Sequence[Override]) -> Any:
    rows = [
        [
            _subject(one),
            one.says,
            until(one).strip() or "until taken back",
            one.actor,
            one.note or "",
        ]
        for one in stands
    ]
    return table("Held over the policies", ("what", "says", "until", "by", "note"), rows)


def _subject(one: Override) -> str:
    if one.subject.startswith(TARGET):
        return one.subject.removeprefix(TARGET)
    name = one.subject.removeprefix(MODEL)
    return "all models" if name == EVERY else f"model {name}"
