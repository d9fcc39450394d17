"""Commands for policy sets: check, compare, apply and roll back.

A set is a YAML file with `policies`, as in a configuration file. The active set is in the ledger
and replaces the file's policies. Earlier sets stay there, with author and time.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli.admin_backend import (
    AdminBackend,
    By,
    Why,
    open_backend,
    open_writing_backend,
    run_query,
)
from gateway.cli.config import Config
from gateway.cli.output import AsJson, Strict, console, emit, fail, read_or_fail, table
from gateway.config.faults import count_of, text_of
from gateway.control.admin import policies as verbs
from gateway.control.admin.verb import NoInput
from gateway.control.policy_changes import FILE
from gateway.followers import FOLLOW_S

Given = Annotated[Path, typer.Argument(help="A YAML file with `policies`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Apply without asking for confirmation.")]


def show(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Print the active policies as YAML, and since when."""
    document = run_query(config, verbs.policies_show, NoInput())
    if document["fault"] is not None:
        typer.echo(
            f"the policy set in force does not fit {config} and is not used: {document['fault']}",
            err=True,
        )
    emit(document, as_json=as_json, show=lambda out: _print_set(out, document))


def check(
    file: Given,
    strict: Strict = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """List all faults of a policy set under this configuration.

    Applies nothing.
    """
    text = read_or_fail(file)
    found = run_query(config, verbs.policies_check, verbs.JudgePoliciesInput(text, str(file)))
    if as_json:
        emit(found, as_json=True, show=lambda _: None)
        raise typer.Exit(0 if _passes(found, strict=strict) else 1)
    _print_faults(found, file, strict=strict)
    count = len(found["policies"])
    noun = "policy" if count == 1 else "policies"
    typer.echo(f"{file} is valid (version {found['version']}): {count} {noun}.")
    for rule in found["policies"]:
        typer.echo(f"  {rule}")


def diff(file: Given, config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Show what a set would change in the active policies, line by line."""
    with open_backend(config) as desk:
        text = _read_valid_set(desk, file)
        lines = desk.do(verbs.policies_diff, verbs.JudgePoliciesInput(text, str(file)))["changes"]
    emit({"changes": lines}, as_json=as_json, show=lambda out: _print_difference(out, lines))


def apply(
    file: Given,
    yes: Yes = False,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show the changes, ask, and activate a set on all running gateways.

    Open requests end under the policies that they began with.
    """
    with open_writing_backend(config, by) as desk:
        text = _read_valid_set(desk, file)
        number = desk.do(verbs.policies_show, NoInput())["set"]
        lines = desk.do(verbs.policies_diff, verbs.JudgePoliciesInput(text, str(file)))["changes"]
        _confirm_changes(lines, yes=yes, as_json=as_json)
        done = desk.do(
            verbs.policies_apply, verbs.ApplyPoliciesInput(text, note, number, str(file))
        )
    _print_result(done, as_json=as_json)


def history(
    most: Annotated[
        int,
        typer.Option(min=1, max=verbs.LISTED_MOST, help="Maximum number of sets, newest first."),
    ] = 20,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """List the applied policy sets, with time and author."""
    found = run_query(config, verbs.policies_history, verbs.PolicyHistoryInput(most))["data"]
    columns = (">set", "=since", "version", "by", "note")
    rows = [
        [str(entry[key] or "") for key in ("set", "since", "version", "by", "note")]
        for entry in found
    ]
    emit(
        found,
        as_json=as_json,
        show=lambda out: out.print(
            table("Policies", columns, rows)
            if rows
            else f"No policy set was ever applied: {FILE} is in force."
        ),
    )


def rollback(
    number: Annotated[
        int | None,
        typer.Argument(help="Number of a set in the history; default: the previous one."),
    ] = None,
    to_file: Annotated[
        bool, typer.Option("--to-file", help=f"Return to the policies of {FILE}.")
    ] = False,
    yes: Yes = False,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Activate an earlier set again, as a new entry of the history."""
    with open_writing_backend(config, by) as desk:
        seen = desk.do(
            verbs.policies_rollback, verbs.RollBackPoliciesInput(number, to_file, look=True)
        )
        _confirm_changes(seen["changes"], yes=yes, as_json=as_json)
        wanted = verbs.RollBackPoliciesInput(number, to_file, note, follows=seen["set"])
        done = desk.do(verbs.policies_rollback, wanted) if seen["changes"] else seen
    _print_result(done, as_json=as_json)


def _confirm_changes(lines: list[str], *, yes: bool, as_json: bool) -> None:
    """Exit unless the user at a terminal confirms."""
    if not as_json:
        _print_difference(console(), lines)
    if lines and not yes:
        if not sys.stdin.isatty():
            fail("there is no terminal for a confirmation: use --yes")
        typer.confirm("Put it in force?", abort=True)


def _print_result(done: dict[str, Any], *, as_json: bool) -> None:
    words = f"Set {done['set']} is in force; running gateways follow within {FOLLOW_S:g} s."
    emit(done, as_json=as_json, show=lambda out: out.print(words) if done["changes"] else None)


def _read_valid_set(desk: AdminBackend, file: Path) -> str:
    """Return the set's text; print all faults and exit if it is invalid."""
    text = read_or_fail(file)
    _print_faults(desk.do(verbs.policies_check, verbs.JudgePoliciesInput(text, str(file))), file)
    return text


def _passes(found: dict[str, Any], *, strict: bool) -> bool:
    return bool(found["valid"]) and not (strict and found["faults"])


def _print_faults(found: dict[str, Any], file: Path, *, strict: bool = False) -> None:
    lines = [text_of(fault, str(file)) for fault in found["faults"]]
    if not _passes(found, strict=strict):
        count = count_of([fault["severity"] for fault in found["faults"]])
        verdict = "does not pass --strict" if found["valid"] else "cannot be used"
        fail(f"{file} {verdict}: {count}\n" + "\n".join(lines))
    for line in lines:
        typer.echo(line, err=True)


def _print_difference(out: Console, lines: list[str]) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        out.print(line, style=colours.get(line[0], ""), markup=False)
    if not lines:
        out.print("Nothing changes.")


def _print_set(out: Console, found: dict[str, Any]) -> None:
    since = f", set {found['set']} of {found['since']} by {found['by']}" if found["set"] else ""
    out.print(f"# from {found['source']}, version {found['version']}{since}", markup=False)
    out.print(found["policies"], end="", markup=False)
