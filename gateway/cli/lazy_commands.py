"""Commands whose modules are imported only when they are called.

Help and shell completion need only names and sentences. The modules (ledger tables, settings
models, clients) take a second to import.
"""

import gc
import importlib
import re
from collections.abc import Mapping
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from gateway.cli.options import with_common_options

WHOLE = 1_000  # characters, longer than any sentence


class CommandGroupSpec(NamedTuple):
    """Group of commands: `commands` maps names to `module:function` below `gateway.cli`."""

    says: str
    commands: Mapping[str, str]


class LazyCommand(TyperCommand):
    """Placeholder of a command until it is called."""

    def __init__(self, name: str, place: str) -> None:
        """`place` is `module:function` below `gateway.cli`."""
        super().__init__(name, rich_markup_mode=None)
        self._module, _, self._function = place.partition(":")

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of its docstring, read from the source without an import."""
        if self.help is None:
            source = Path(__file__).with_name(f"{self._module}.py").read_text(encoding="utf-8")
            told = re.search(
                rf'^def {self._function}\(.*?"""(.*?)"""', source, re.DOTALL | re.MULTILINE
            )
            assert told is not None, f"{self._function} has no docstring"
            self.help = cleandoc(told[1])
        return super().get_short_help_str(limit)

    def real(self) -> Any:
        """Return the command with its options; imports its module."""
        found = getattr(_import_module(f"gateway.cli.{self._module}"), self._function)
        each_typer = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        each_typer.command(self.name)(found)
        return with_common_options(
            typer.main.get_command(each_typer), f"{self._module}:{self._function}"
        )


class LateGroup(TyperGroup):
    """Group whose commands are imported when their name is given."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write whole sentences, wrapped to the terminal; Typer would truncate them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(WHOLE))
                    for name, command in self.commands.items()
                ]
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.real() if isinstance(command, LazyCommand) else command, rest


def _import_module(name: str) -> ModuleType:
    """Import a module and freeze its objects, so that garbage collection skips them."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def group_of(name: str, noun: CommandGroupSpec) -> LateGroup:
    """Return the group of a noun with its commands."""
    return LateGroup(
        name=name,
        commands={verb: LazyCommand(verb, place) for verb, place in noun.commands.items()},
        help=noun.says,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
