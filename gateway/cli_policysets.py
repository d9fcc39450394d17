"""Sets of policies: judged, compared, put in force on every running gateway, and taken back.

A set is a YAML file with `policies`, as a configuration file has them. The one in force lies in the
ledger, over those of the configuration file; every earlier one stays there, with who and when.
"""

import difflib
import getpass
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from sqlalchemy import Engine

from gateway.cli_config import Config, ledger_engine, ledger_reader, load_or_fail
from gateway.cli_output import AsJson, console, emit, fail, table
from gateway.clock import Clock
from gateway.following import FOLLOW_S
from gateway.policysets import Effective, examine_set, in_words, rules_of, written
from gateway.settings import Settings, version
from ledger.policies import (
    PoliciesMovedError,
    PolicySet,
    policies_in_force,
    policy_set,
    policy_sets,
    store_policies,
)

Given = Annotated[Path, typer.Argument(help="A YAML file with `policies`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without being asked.")]
By = Annotated[str | None, typer.Option(help="Who does it; default: the user's name.")]
Why = Annotated[str | None, typer.Option("--note", help="Why, for whoever reads the history.")]
FILE = "the configuration file"


def show(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """The policies in force, as YAML, and since when."""
    settings = load_or_fail(config)
    with ledger_reader(settings) as engine:
        stored = policies_in_force(engine)
    rules = rules_of(settings, stored)
    if rules.fault is not None:
        typer.echo(
            f"{config}: the set in force does not fit and is not used: {rules.fault}", err=True
        )
    text = written(rules.settings)
    document = {**_line(stored, settings), "version": rules.version, "policies": text}
    emit(document, as_json=as_json, show=lambda out: _print_set(out, stored, rules, text))


def check(file: Given, config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Every fault of a set under this configuration; puts nothing in force."""
    settings = load_or_fail(config)
    examined = examine_set(_text(file), settings, str(file))
    found = examined.settings
    if as_json:
        faults = [fault.document() for fault in examined.faults]
        words = [] if found is None else [in_words(rule) for rule in found.policies]
        document = {"valid": found is not None, "faults": faults, "policies": words}
        emit(document, as_json=True, show=lambda _: None)
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
        before = rules_of(settings, policies_in_force(engine)).settings
    lines = _difference(before, new)
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
        _put(engine, settings, new, written(new), _How(yes, by, note, as_json))


def history(
    most: Annotated[int, typer.Option(min=1, help="so many, the newest first")] = 20,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Which sets were put in force, when and by whom."""
    settings = load_or_fail(config)
    with ledger_reader(settings) as engine:
        found = [_line(one, settings) for one in policy_sets(engine, most)]
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
        earlier = None if to_file else _earlier(engine, number)
        if earlier is None or earlier.document is None:
            new, document = settings, None
        else:
            rules = rules_of(settings, earlier)
            if rules.fault is not None:
                fail(f"set {earlier.number} no longer fits: {rules.fault}")
            new, document = rules.settings, earlier.document
        _put(engine, settings, new, document, _How(yes, by, note, as_json))


class _How(NamedTuple):
    """What a command was told of the change."""

    yes: bool
    by: str | None
    note: str | None
    as_json: bool


def _put(
    engine: Engine, settings: Settings, new: Settings, document: str | None, how: _How
) -> None:
    stored = policies_in_force(engine)
    lines = _difference(rules_of(settings, stored).settings, new)
    if not how.as_json:
        _print_difference(console(), lines)
    if lines and not how.yes:
        if not sys.stdin.isatty():
            fail("nobody can be asked here: say --yes")
        typer.confirm("Put it in force?", abort=True)
    number, by = 0 if stored is None else stored.number, how.by or getpass.getuser()
    if lines:
        number += 1
        entry = PolicySet(number, document, Clock().wall_us(), by, how.note)
        try:
            store_policies(engine, entry)
        except PoliciesMovedError:
            fail("somebody else put a set in force meanwhile: look again")
    result = {"set": number, "changes": lines, "version": version(new), "by": by}
    words = f"Set {number} is in force; running gateways follow within {FOLLOW_S:g} s."
    emit(result, as_json=how.as_json, show=lambda out: out.print(words) if lines else None)


def _earlier(engine: Engine, number: int | None) -> PolicySet | None:
    """None: what the configuration file says, from before the first set."""
    if number is not None:
        found = policy_set(engine, number)
        if found is None:
            fail(f"there is no set {number}: `breakeven policy history` lists them")
        return found
    sets = policy_sets(engine, 2)
    if not sets:
        fail(f"nothing to take back: only {FILE} ever said")
    return sets[1] if len(sets) > 1 else None


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


def _difference(before: Settings, after: Settings) -> list[str]:
    old, new = written(before).splitlines(), written(after).splitlines()
    return list(difflib.unified_diff(old, new, "in force", "new", lineterm=""))


def _print_difference(out: Console, lines: list[str]) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        out.print(line, style=colours.get(line[0], ""), markup=False)
    if not lines:
        out.print("Nothing changes.")


def _print_set(out: Console, stored: PolicySet | None, rules: Effective, text: str) -> None:
    since = "" if stored is None else f", set {stored.number} of {_when(stored)} by {stored.actor}"
    source = FILE if stored is None or stored.document is None or rules.fault else "the ledger"
    out.print(f"# from {source}, version {rules.version}{since}", markup=False)
    out.print(text, end="", markup=False)


def _line(stored: PolicySet | None, settings: Settings) -> dict[str, object]:
    if stored is None:
        return {"set": 0, "since": None, "by": FILE, "note": None, "version": version(settings)}
    rules = rules_of(settings, stored)
    return {
        "set": stored.number,
        "since": _when(stored),
        "by": stored.actor,
        "note": stored.note,
        "version": None if rules.fault else rules.version,
    }


def _when(stored: PolicySet) -> str:
    return datetime.fromtimestamp(stored.recorded_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
