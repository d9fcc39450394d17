"""Every block of the site is run, read as what it is, or of a kind that says why it is not."""

import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from deploy.docsite import litellm_page
from deploy.docsite.blocks import DATA, FIRST_HOUR, NOT_RUN, RUN, SHELLS, blocks, calls, commands
from deploy.docsite.command_tree import INCOMPLETE, PROGRAM, fault_of
from deploy.docsite.pages import PAGES
from deploy.docsite.staging import ROOT, UNLISTED, SitePages
from gateway.cli import app
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.litellm_import import carry_over
from ledger.prices.files import load_price_file

SOURCES = {**SitePages().sources, "README.md": ROOT / "README.md"}
FOUND = [block for page, path in SOURCES.items() for block in blocks(page, path.read_text("utf-8"))]
OF_DOCS = [block for block in FOUND if SOURCES[block.page].is_relative_to(ROOT / "docs")]
SHELL = [block for block in FOUND if block.language in SHELLS]
USUAL = "tutorials/engines-and-api.md"  # whose configuration pages with `config` begin with
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
INLINE = re.compile(r"`breakeven ([^`]*)`")
HISTORY = {"reference/changelog.md", "reference/cli.md"} | set(filter(UNLISTED.fullmatch, SOURCES))


def saved(page: str, name: str) -> str:
    return next(block.text for block in FOUND if (block.page, block.value("save")) == (page, name))


def test_every_command_and_configuration_says_its_kind() -> None:
    known = {RUN, *FIRST_HOUR, *DATA, *NOT_RUN}
    judged = [block for block in OF_DOCS if block.language in {*SHELLS, "yaml", "csv"}]
    assert len(judged) > 60
    assert [block.place for block in judged if block.kind not in known] == []
    shells = [block for block in judged if block.language in SHELLS]
    assert [block.place for block in shells if block.kind in DATA] == []
    assert {block.kind for block in shells} >= {RUN, *FIRST_HOUR, *NOT_RUN}  # no kind is unused


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_the_command_line_accepts_every_command(block) -> None:
    found = [words for command in commands(block.text) for words in calls(command, PROGRAM)]
    assert {" ".join(words): fault_of(words) for words in found if fault_of(words)} == {}


@pytest.mark.parametrize("page", sorted(SOURCES.keys() - HISTORY))
def test_commands_within_sentences_exist(page: str) -> None:
    """They may leave out arguments, and name several commands of a group at once."""
    faults = {}
    for written in INLINE.findall(SOURCES[page].read_text("utf-8")):
        first, *others = written.replace("\\|", "|").split(" | ")
        words = shlex.split(first)
        for tail in (words, *([*words[:-1], *shlex.split(other)] for other in others)):
            fault = None if "..." in tail or "URL" in tail else fault_of(tail)
            if fault and not re.search(f"Missing|requires an argument|{INCOMPLETE}", fault):
                faults[" ".join(tail)] = fault
    assert faults == {}


@pytest.mark.parametrize(
    "block", [block for block in OF_DOCS if block.kind == "config"], ids=lambda block: block.place
)
def test_configurations_are_what_the_schema_reads(block) -> None:
    """A part of a file may lack what another part has; a whole file is checked as such."""
    draft = draft_settings(read_document(block.text))
    faults = [fault for fault in draft.faults if "is required" not in str(fault)]
    assert faults == []
    assert draft.settings is not None


def test_a_setting_that_is_none_would_be_found() -> None:
    draft = draft_settings(read_document("server: {prot: 1}"))
    assert draft.faults


@pytest.mark.parametrize(
    "block",
    [block for block in OF_DOCS if block.kind in DATA - {"config", "file"}],
    ids=lambda block: block.place,
)
def test_other_data_is_read_by_what_it_is_for(block, tmp_path: Path) -> None:
    if block.kind == "litellm":
        given = yaml.safe_load(block.text)
        made = carry_over(given, gpu=litellm_page.GPU, provider_of=lambda _: None)
        assert made.document["models"]
    elif block.kind == "prices":
        path = tmp_path / "prices.yaml"
        path.write_text(block.text)
        assert load_price_file(path, rank=1).drafts
    else:
        assert block.kind == "policies"
        draft = draft_settings(read_document(block.text))
        assert draft.faults == ()


class PageRun:
    """Runs the commands of a page in this process, as a shell would in one folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.environ = monkeypatch

    def run(self, command: str) -> str:
        if command.startswith("export "):
            for name, value in re.findall(r"(\w+)=(\$\([^()]*\)|\S+)", command):
                inner = re.fullmatch(r"\$\((.*) \| head -1\)", value)
                self.environ.setenv(name, self.run(inner[1]).splitlines()[0] if inner else value)
            return ""
        program, *words = shlex.split(command)
        assert program == PROGRAM, command
        answer = CliRunner().invoke(app.app, words, catch_exceptions=False)
        assert answer.exit_code == 0, f"{command}\n{answer.output}"
        return answer.output


def pages_that_run() -> list[str]:
    return sorted({block.page for block in OF_DOCS if block.kind == RUN})


@pytest.mark.parametrize("page", pages_that_run())
def test_the_commands_of_a_page_run_in_order(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in KEYS:
        monkeypatch.setenv(name, "sk-of-a-test")
    own = [block for block in OF_DOCS if block.page == page]
    takes_config = any("config" in block.words[1:] for block in own)
    if takes_config:
        Path("breakeven.yaml").write_text(saved(USUAL, "breakeven.yaml"))
    for block in own:
        if name := block.value("save"):
            Path(name).write_text(block.text)
    shell = PageRun(monkeypatch)
    if takes_config:
        shell.run("breakeven keys create --name page --team search")
    for block in own:
        if block.kind == RUN:
            for command in commands(block.text):
                shell.run(command)


def test_a_command_that_fails_would_be_found(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="No such file"):
        PageRun(monkeypatch).run("breakeven check --config none.yaml")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("breakeven up", [["up"]]),
        ("export KEY=$(breakeven keys list | head -1)", [["keys", "list"]]),
        ('breakeven check "$(breakeven x)"', [["x"], ["check", "$(breakeven x)"]]),
        ("kubectl -n llm exec pod -- breakeven target list", [["target", "list"]]),
        ("echo 'a; breakeven b' # breakeven c", []),
    ],
)  # fmt: skip
def test_calls_are_found_where_a_shell_would_run_them(command: str, found: list) -> None:
    assert list(calls(command, PROGRAM)) == found


def test_blocks_have_the_mark_before_them_and_no_other() -> None:
    text = "<!-- block: run a=b -->\n```sh\nx\n```\n\nwords\n```sh\ny\n```\n"
    text += "1. z\n\n    ```yaml\n    q: 1\n    ```\n"
    first, second, third = blocks("p", text)
    assert (first.kind, first.value("a"), first.text, first.place) == ("run", "b", "x", "p:2")
    assert (second.kind, second.value("a")) == ("", None)
    assert (third.language, third.text) == ("yaml", "q: 1")


def test_generated_pages_are_among_the_sources() -> None:
    groups = defaultdict(list)
    for page in PAGES:
        groups[page in SOURCES].append(page)
    assert groups[False] == []
