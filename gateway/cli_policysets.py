"""Sets of policies: judged, compared, put in force on every running gateway, and taken back.

A set is a YAML file with `policies`, as a configuration file has them. The one in force lies in the
ledger, over those of the configuration file; every earlier one stays there, with who and when.
"""

import getpass
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from sqlalchemy import Engine

from gateway.cli_config import Config, ledger_engine, ledger_reader, load_or_fail
from gateway.cli_output import AsJson, console, emit, fail, table
from gateway.clock import Clock
from gateway.following import FOLLOW_S
from gateway.policysets import Effective, examine_set, in_words, written
from gateway.policyverbs import (
    FILE,
    Author,
    Change,
    Impossible,
    changes,
    checked,
    earlier,
    newest,
    past,
    put_in_force,
    shown,
    when,
)
from gateway.settings import Settings, version
from ledger.policies import PolicySet

Given = Annotated[Path, typer.Argument(help="A YAML file with `policies`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without being asked.")]
By = Annotated[str | None, typer.Option(help="Who does it; default: the user's name.")]
Why = Annotated[str | None, typer.Option("--note", help="Why, for whoever reads the history.")]


def show(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """The policies in force, as YAML, and since when."""
    settings = load_or_fail(config)
    with ledger_reader(settings) as engine:
        document, stored, rules = shown(engine, settings)
    if rules.fault is not None:
        typer.echo(
            f"{config}: the set in force does not fit and is not used: {rules.fault}", err=True
        )
    text = str(document["policies"])
    emit(document, as_json=as_json, show=lambda out: _print_set(out, stored, rules, text))


def check(file: Given, config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Every fault of a set under this configuration; puts nothing in force."""
    settings = load_or_fail(config)
    examined = examine_set(_text(file), settings, str(file))
    found = examined.settings
    if as_json:
        emit(checked(examined), as_json=True, show=lambda _: None)
        raise typer.Exit(0 if found is not None else 1)
    if found is None:
        fail(f"{file} cannot be used: {examined.count}\n" + "\n".join(examined.lines))
    for line in examined.lines:
        typer.echo(line, err=True)
    typer.echo(f"{file} fits (version {version(found)}): {len(found.policies)} policies.")
    for rule in found.policies:
        typer.echo(f"  {in_words(rule)}")


def diff(file: Given, config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """What a set would change in the policies in force, line by line."""
    settings = load_or_fail(config)
    new = _fitting(file, settings)
    with ledger_reader(settings) as engine:
        lines = changes(engine, settings, new)
    emit({"changes": lines}, as_json=as_json, show=lambda out: _print_difference(out, lines))


def apply(
    file: Given,
    yes: Yes = False,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show what changes, ask, and put a set in force; running gateways follow by themselves.

    Requests under way end under the policies that they began with.
    """
    settings = load_or_fail(config)
    new = _fitting(file, settings)
    with ledger_engine(settings) as engine:
        _put(engine, settings, Change(new, written(new)), _How(yes, by, note, as_json))


def history(
    most: Annotated[int, typer.Option(min=1, help="so many, the newest first")] = 20,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Which sets were put in force, when and by whom."""
    settings = load_or_fail(config)
    with ledger_reader(settings) as engine:
        found = past(engine, settings, most)
    columns = (">set", "=since", "version", "by", "note")
    rows = [
        [str(one[key] or "") for key in ("set", "since", "version", "by", "note")] for one in found
    ]
    emit(
        found,
        as_json=as_json,
        show=lambda out: out.print(
            table("Policies", columns, rows) if rows else f"Only {FILE} ever said."
        ),
    )


def rollback(
    number: Annotated[int | None, typer.Argument(help="Of the history; default: the last.")] = None,
    to_file: Annotated[bool, typer.Option("--to-file", help=f"Those of {FILE}.")] = False,
    yes: Yes = False,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Put an earlier set in force again, as a new entry of the history."""
    settings = load_or_fail(config)
    with ledger_engine(settings) as engine:
        try:
            change = earlier(engine, settings, number, to_file=to_file)
        except Impossible as error:
            fail(str(error))
        _put(engine, settings, change, _How(yes, by, note, as_json))


class _How(NamedTuple):
    """What a command was told of the change."""

    yes: bool
    by: str | None
    note: str | None
    as_json: bool


def _put(engine: Engine, settings: Settings, change: Change, how: _How) -> None:
    number, lines = newest(engine), changes(engine, settings, change.new)
    if not how.as_json:
        _print_difference(console(), lines)
    if lines and not how.yes:
        if not sys.stdin.isatty():
            fail("nobody can be asked here: say --yes")
        typer.confirm("Put it in force?", abort=True)
    by = how.by or getpass.getuser()
    if lines:
        author = Author(by, how.note, Clock().wall_us())
        try:
            number = put_in_force(engine, change, author, follows=number)
        except Impossible as error:
            fail(str(error))
    result = {"set": number, "changes": lines, "version": version(change.new), "by": by}
    words = f"Set {number} is in force; running gateways follow within {FOLLOW_S:g} s."
    emit(result, as_json=how.as_json, show=lambda out: out.print(words) if lines else None)


def _fitting(file: Path, settings: Settings) -> Settings:
    examined = examine_set(_text(file), settings, str(file))
    if examined.settings is None:
        fail(f"{file} cannot be used: {examined.count}\n" + "\n".join(examined.lines))
    for line in examined.lines:
        typer.echo(line, err=True)
    return examined.settings


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}")


def _print_difference(out: Console, lines: list[str]) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        out.print(line, style=colours.get(line[0], ""), markup=False)
    if not lines:
        out.print("Nothing changes.")


def _print_set(out: Console, stored: PolicySet | None, rules: Effective, text: str) -> None:
    since = "" if stored is None else f", set {stored.number} of {when(stored)} by {stored.actor}"
    source = FILE if stored is None or stored.document is None or rules.fault else "the ledger"
    out.print(f"# from {source}, version {rules.version}{since}", markup=False)
    out.print(text, end="", markup=False)
