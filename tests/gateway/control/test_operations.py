"""Each operation has a path of its own, somebody who may call it, and the command that it names."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

from gateway.cli.commands import COMMANDS
from gateway.cli.lazy_commands import CommandGroupSpec
from gateway.control import operations
from gateway.control.access import OTHER_ROUTES
from gateway.control.admin.verb import PREFIX
from gateway.control.operations import OPERATIONS, ROUTES

BY_HTTP_ALONE = {  # what the dashboard shows and enters
    "budgets_list", "contracts_list", "currencies_list", "projects_list", "scenarios_list",
    "scenarios_save", "scenarios_drop", "policies_simulate_cancel",
    "key_show", "own_show", "own_keys_list", "own_keys_create", "own_keys_rotate",
    "own_keys_revoke", "verdict_read", "gpu_prices_list", "reserved_list", "reserved_drop",
}  # fmt: skip


def test_each_has_a_name_a_path_and_a_sentence() -> None:
    names = [operation.name for operation in OPERATIONS]
    asked = [f"{operation.method} {PREFIX}{operation.path}" for operation in OPERATIONS]
    assert len({*names}) == len({*asked}) == len(OPERATIONS)
    assert {*asked} | OTHER_ROUTES.keys() == ROUTES.keys()
    assert not {*asked} & OTHER_ROUTES.keys()
    assert all(each.summary and not each.summary.endswith(".") for each in OPERATIONS)


def test_what_changes_something_asks_for_more_than_to_look() -> None:
    """A verb that is only given a question may be a POST, too, for the length of it."""
    asks = {
        "policies_check",
        "policies_diff",
        "policies_simulate",
        "policies_simulate_cancel",
        "prices_diff",
        "invoices_compare",
    }
    for operation in OPERATIONS:
        scope = operation.scope
        if operation.method == "GET" or operation.name in asks:
            assert not scope.endswith(":apply"), operation.name
        else:
            assert scope.endswith(":apply") or scope.startswith("keys"), operation.name


def nouns() -> list[ModuleType]:
    return [module for module in vars(operations).values() if hasattr(module, "VERBS")]


def test_every_operation_of_every_noun_is_in_the_table() -> None:
    """One that a file defines and its `VERBS` lacks would have no route."""
    kind = type(OPERATIONS[0])
    made = [each for noun in nouns() for each in vars(noun).values() if isinstance(each, kind)]
    assert {each.name for each in made} == {each.name for each in OPERATIONS}
    files = Path(nouns()[0].__file__ or "").parent.glob("*.py")
    named = {file.stem for file in files if "\nVERBS = " in file.read_text(encoding="utf-8")}
    assert {noun.__name__.rpartition(".")[2] for noun in nouns()} == named


def constant(name: str) -> str:
    """The name under which the operation is defined."""
    return next(
        key
        for noun in nouns()
        for key, each in vars(noun).items()
        if getattr(each, "name", None) == name
    )


def asked_by(words: str) -> set[str]:
    """Every name behind a dot in the command's file and in the files of commands it imports."""
    noun, _, verb = words.partition(" ")
    group = COMMANDS[noun]
    assert isinstance(group, CommandGroupSpec)
    module = importlib.import_module(f"gateway.cli.{group.commands[verb].partition(':')[0]}")
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    more = [
        importlib.import_module(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gateway.cli.")
        and node.module
    ]  # fmt: skip
    trees = [
        tree,
        *(ast.parse(Path(item.__file__ or "").read_text(encoding="utf-8")) for item in more),
    ]
    return {
        node.attr for each in trees for node in ast.walk(each) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_its_command_is_there_and_asks_for_it(operation) -> None:
    if operation.command is None:
        assert operation.name in BY_HTTP_ALONE
    else:
        assert constant(operation.name) in asked_by(operation.command)


def test_a_command_that_does_not_ask_for_it_is_found() -> None:
    assert constant("keys_rotate") == "keys_rotate"
    assert "keys_rotate" not in asked_by("rates list")
    with pytest.raises(KeyError):
        asked_by("keys lend")
