"""A file that was read without a fault is known again; one that says anything else is read anew."""

import os
from pathlib import Path

import pytest

from gateway.config import remembered
from gateway.config.remembered import KNOWN_FILE, RememberedSettings, load_remembered
from gateway.errors import ConfigError

TEXT = (
    "state_dir: {}  # here\nmodels: {{m: {{targets: [openai/m]}}}}\nproviders: {{openai: {{}}}}\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    path = tmp_path / "breakeven.yaml"
    path.write_text(TEXT.format(tmp_path / "state"))
    return path


def is_known(path: Path) -> bool:
    return isinstance(load_remembered(path), RememberedSettings)


def test_what_was_read_once_is_known_and_the_rest_is_read_when_asked(file, monkeypatch) -> None:
    whole = load_remembered(file)
    assert not isinstance(whole, RememberedSettings)
    reads = []
    load = remembered.load_settings
    monkeypatch.setattr(remembered, "load_settings", lambda path: reads.append(path) or load(path))
    known = load_remembered(file)
    assert isinstance(known, RememberedSettings)
    assert (known.state, known.state_dir) == (whole.state, whole.state_dir)
    assert (known.ledger.url, known.ledger.url_env) == (whole.ledger.url, whole.ledger.url_env)
    assert reads == []
    assert known.models == whole.models
    assert known.model_dump() == whole.model_dump()
    assert reads
    with pytest.raises(AttributeError):
        _ = known.nothing_like_it


def another_text(file: Path, state: Path) -> None:
    file.write_text(file.read_text() + "\n")


def another_code(file: Path, state: Path) -> None:
    remembered._PACKAGES = (*remembered._PACKAGES, "gateway/http")


def others_may_write(file: Path, state: Path) -> None:
    state.chmod(0o777)


def others_may_write_it(file: Path, state: Path) -> None:
    (state / KNOWN_FILE).chmod(0o666)


def garbled(file: Path, state: Path) -> None:
    (state / KNOWN_FILE).write_text("[")


def of_a_later_form(file: Path, state: Path) -> None:
    (state / KNOWN_FILE).write_text('{"seen": 1}')


def gone(file: Path, state: Path) -> None:
    (state / KNOWN_FILE).unlink()


CHANGES = [another_text, another_code, others_may_write, others_may_write_it, garbled]


@pytest.mark.parametrize("change", [*CHANGES, of_a_later_form, gone])
def test_after_any_change_it_is_read_whole(file: Path, change, monkeypatch) -> None:
    monkeypatch.setattr(remembered, "_PACKAGES", remembered._PACKAGES)
    load_remembered(file)
    assert is_known(file), "the control"
    change(file, file.parent / "state")
    assert not is_known(file)


def test_somebody_elses_is_not_believed(file: Path, monkeypatch) -> None:
    load_remembered(file)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not is_known(file)


def test_a_faulty_file_is_never_known_and_tells_its_faults_each_time(file: Path) -> None:
    file.write_text(file.read_text() + "mdels: {}\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="mdels"):
            load_remembered(file)
    assert not (file.parent / "state" / KNOWN_FILE).exists()


def test_a_file_without_a_state_directory_yet_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "breakeven.yaml"
    path.write_text(TEXT.format(tmp_path / "none"))
    assert not is_known(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["breakeven.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        "ledger: {{url: 'postgresql://me@db/x'}}\nstate_dir: {}\n",
        "state_dir:\n  {}\n",
        "state_dir: &here {}\n",
    ],
)
def test_an_address_that_may_be_secret_and_an_odd_spelling_are_not_kept(
    tmp_path: Path, words: str
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    path = tmp_path / "breakeven.yaml"
    path.write_text(words.format(state))
    assert load_remembered(path).state
    assert not list(state.iterdir())


def test_the_name_of_the_ledgers_variable_is_kept(file: Path) -> None:
    file.write_text(file.read_text() + "ledger: {url_env: WHERE}\n")
    load_remembered(file)
    known = load_remembered(file)
    assert isinstance(known, RememberedSettings)
    assert known.ledger.url_env == "WHERE"


def test_a_text_that_changes_while_it_is_read_is_not_taken_for_checked(file, monkeypatch) -> None:
    load = remembered.load_settings

    def slow(path: Path):
        settings = load(path)
        path.write_text(path.read_text().replace("openai/m", "openai/n"))
        return settings

    monkeypatch.setattr(remembered, "load_settings", slow)
    load_remembered(file)
    assert not (file.parent / "state" / KNOWN_FILE).exists()
