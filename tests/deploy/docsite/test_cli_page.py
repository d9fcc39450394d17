"""The page of the command line has every command with every option."""

from deploy.docsite.cli_page import text
from deploy.docsite.command_tree import commands


def test_every_command_and_option_is_on_the_page() -> None:
    shown = text()
    parts = {part.partition("\n")[0].lstrip("# "): part for part in shown.split("\n##")}
    for entry in commands():
        part = parts[entry.name]
        for item in entry.command.params:
            names = item.opts if item.param_type_name == "option" else [item.name.upper()]
            assert all(f"`{name}`" in part for name in names if name != "--help"), entry.name


def test_bounds_defaults_and_choices_are_stated() -> None:
    shown = text()
    assert "| `--speed` | number, at least 0.01, at most 1000000 | `1.0` |" in shown
    assert "| `--config`, `-c` | path | `breakeven.yaml` |" in shown
    assert "`focus-1.2`" in shown
    assert "Usage: `breakeven keys rotate KEY_ID [OPTIONS]`" in shown
    assert "Sentinel" not in shown
    assert "<class" not in shown
