"""What lists say of a command is what it says of itself."""

import pytest

from gateway.cli.commands import COMMANDS
from gateway.cli.lazy_commands import CommandGroupSpec, LazyCommand

WIDE = 1_000  # characters: nothing is cut
EVERY = {
    f"{name} {verb}": command
    for name, item in COMMANDS.items()
    for verb, command in (
        item.commands if isinstance(item, CommandGroupSpec) else {"": item}
    ).items()
}


@pytest.mark.parametrize("words", EVERY)
def test_its_sentence_is_the_first_of_its_help(words: str) -> None:
    late = LazyCommand(words.rsplit(maxsplit=1)[-1], EVERY[words])
    real = late.real()
    assert late.get_short_help_str(WIDE) == real.get_short_help_str(WIDE)
    assert real.name == late.name
