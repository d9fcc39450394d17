"""The command line as data: commands, options, and a parser that runs no command."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import typer
import typer.main
from typer.exceptions import TyperException

from gateway.cli import app
from gateway.cli.lazy_commands import LazyCommand

PROGRAM = "breakeven"
INCOMPLETE = "Missing command."  # the error for a group without a command


class CommandEntry(NamedTuple):
    """A command; `words` are the words after the program's name."""

    words: tuple[str, ...]
    command: Any

    @property
    def name(self) -> str:
        """Return the command as it is typed."""
        return " ".join((PROGRAM, *self.words))


def commands() -> Iterator[CommandEntry]:
    """Yield every command that is not a group, in the order of the command line's help."""
    yield from _below(typer.main.get_command(app.app), ())


def root_options() -> list[Any]:
    """Return the options that stand before the command's name."""
    return list(typer.main.get_command(app.app).params)


def fault_of(words: Sequence[str]) -> str | None:
    """Return the error of the command line for these words, None if accepted. Runs no command."""
    try:
        _parse(typer.main.get_command(app.app), PROGRAM, list(words), None)
    except TyperException as error:
        return str(getattr(error, "message", "") or error)
    except typer.Exit:  # an option such as `--help` ends the program
        return None
    return None


def _parse(command: Any, name: str, words: list[str], parent: Any) -> None:
    """Parse the words as a call would. Raises Typer's own errors."""
    command = command.real() if isinstance(command, LazyCommand) else command
    is_group = bool(getattr(command, "commands", None))
    if is_group and not words:
        raise typer.BadParameter(INCOMPLETE)
    context = command.make_context(name, words, parent=parent)
    if is_group:
        # Typer has no public attribute for the words after a group's own options.
        left = [*context._protected_args, *context.args]  # noqa: SLF001  (see above)
        if not left:
            return
        found, below, rest = command.resolve_command(context, left)
        _parse(below, str(found), rest, context)


def _below(group: Any, words: tuple[str, ...]) -> Iterator[CommandEntry]:
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from _below(command, (*words, name))
        else:
            real = command.real() if isinstance(command, LazyCommand) else command
            yield CommandEntry((*words, name), real)
