"""README and guides are true: settings, commands, verbs, files exist; nothing is left out."""

import re
import subprocess
from pathlib import Path

import pytest
import typer.main
import yaml
from findings import assert_none

from gateway.cli import app as cli
from gateway.config import settings_table
from gateway.config.schema import Settings

FOLDERS = ("backends", "dashboard", "deploy", "gateway", "ledger", "router", "tests")
GUIDES = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "gateway/README.md", "ledger/README.md",
    "tests/README.md",
    "tests/bench/README.md", "deploy/helm/README.md",
)  # fmt: skip

# Where the table of settings has its examples from.
EXAMPLES = ("breakeven.example.yaml", "docs/reference/more-settings.yaml")


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


@pytest.fixture(params=GUIDES)
def guide(root: Path, request) -> Path:
    return root / request.param


@pytest.fixture(scope="module")
def targets(root: Path) -> set[str]:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


def test_the_settings_table_is_the_settings(root: Path) -> None:
    text = (root / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    given = [yaml.safe_load((root / name).read_text("utf-8")) for name in EXAMPLES]
    examples = settings_table.examples_of(given)
    assert settings_table.replace(text, examples) == text, "run `make settings`"
    assert_none(
        (row.path for row in settings_table.rows() if f"`{row.path}`" not in text),
        "run `make settings`",
    )
    bare = [row for row in settings_table.rows() if row.type and row.default in {"", "required"}]
    assert_none(
        (f"{row.path} has no example" for row in bare if row.path not in examples),
        "set it in docs/reference/more-settings.yaml, then run `make settings`",
    )


def test_make_settings_takes_its_examples_from_the_same_files(root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert f"settings_table docs/reference/settings.md {' '.join(EXAMPLES)}\n" in makefile


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_settings(root: Path, name: str) -> None:
    Settings.model_validate(yaml.safe_load((root / name).read_text("utf-8")))


def test_every_make_verb_exists(root: Path, guide: Path, targets: set[str]) -> None:
    benches = {path.stem for path in (root / "tests/bench").glob("bench_*.py")}
    targets = targets | {name.replace("_", "-") for name in benches}  # one rule for all of them
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", guide.read_text("utf-8"), re.MULTILINE))
    assert named <= targets


def test_every_verb_of_the_makefile_is_explained_and_phony(root: Path, targets: set[str]) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    phony = set(re.search(r"\.PHONY: (.*)", makefile)[1].split())
    assert phony == targets


@pytest.mark.parametrize("verb", ["run", "demo"])
def test_both_ports_can_be_chosen_as_the_readme_says(root: Path, readme: str, verb: str) -> None:
    assert "make run PORT=9000 DASHBOARD_PORT=9001" in readme
    # `make test` is a make, too: the one within it would tell which directory it enters and leaves
    make = ["make", "-n", "--no-print-directory", verb, "PORT=9000", "DASHBOARD_PORT=9001"]
    answer = subprocess.run(make, cwd=root, check=True, capture_output=True, text=True)
    assert answer.stdout.split()[-4:] == ["--port", "9000", "--dashboard-port", "9001"]


def test_every_command_of_the_table_exists(readme: str) -> None:
    group = typer.main.get_command(cli.app)
    rows = re.findall(r"^\| `breakeven (.*?)` \|", readme, re.MULTILINE)
    assert len(rows) >= 8
    for row in rows:
        words = re.sub(r" --\w+ [A-Z]+", "", row).replace("\\|", " ").split()
        command = group.commands[words[0]]
        for word in words[1:]:
            assert word in command.commands, row


def test_no_command_is_missing_from_the_table(readme: str) -> None:
    rows = re.findall(r"^\| `breakeven (.*?)` \|", readme, re.MULTILINE)
    told = {word for row in rows for word in re.findall(r"[a-z]+", row)}
    group = typer.main.get_command(cli.app)
    names = {name: getattr(command, "commands", {}) for name, command in group.commands.items()}
    assert_none(
        sorted({*names, *(sub for subs in names.values() for sub in subs)} - told),
        "add the command to the table in README.md",
    )


def test_the_first_screen_has_the_two_commands_and_a_priced_request(readme: str) -> None:
    screen = "\n".join(readme.splitlines()[:40])
    for needed in ("make run", "make demo", "curl", "x-breakeven-cost-usd"):
        assert needed in screen


@pytest.mark.parametrize(
    ("name", "most"), [("README.md", 120), ("CONTRIBUTING.md", 120), ("CHANGELOG.md", 150)]
)
def test_first_pages_stay_short(root: Path, name: str, most: int) -> None:
    """Of the changelog the newest version counts."""
    text = (root / name).read_text(encoding="utf-8")
    newest = text.partition("\n## ")[2].partition("\n## ")[0] if name == "CHANGELOG.md" else text
    assert len(newest.splitlines()) <= most


def test_files_that_it_names_exist(root: Path, guide: Path) -> None:
    text = guide.read_text("utf-8")
    named = {
        root / name
        for name in re.findall(
            r"`((?:deploy|router|backends|tests|gateway|ledger|dashboard)/[\w./-]+\.\w+)", text
        )
    }
    named |= {guide.parent / name for name in re.findall(r"\]\(([\w./-]+)\)", text)}
    assert_none(
        (path for path in sorted(named) if not path.exists()), f"correct the paths in {guide.name}"
    )


def test_every_guide_is_found_from_the_readme(readme: str) -> None:
    assert_none(
        (name for name in GUIDES[1:] if f"]({name})" not in readme), "link the page in README.md"
    )


def test_every_registry_that_it_names_is_there(root: Path) -> None:
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Registries")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w/.]+)` `(\w+)` \|", table, re.MULTILINE)
    assert len(rows) >= 15
    assert_none(
        f"{path} has no {name}"
        for path, name in rows
        if not re.search(rf"^{name}\b.* = ", (root / path).read_text("utf-8"), re.MULTILINE)
    )
