"""Profiles: written and read back, refused where they are none, and overruled by a person."""

import json

import pytest

from backends.engine import tuned
from backends.engine.tuned import ProfileError


def test_what_was_written_is_read(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    path = tmp_path / "profile.json"
    tuned.write(path, ["--max-num-seqs", "512"], tmp_path, {"gain": 1.4})
    made = tuned.read(path)
    assert made.flags == ("--max-num-seqs", "512")
    assert made.config_sha256 == tuned.digest(tmp_path)
    assert made.about == {"gain": 1.4}


def test_flags_alone_are_enough(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text('{"breakeven_profile": 1, "flags": ["--enforce-eager"]}')
    assert tuned.read(path) == tuned.TunedProfile(("--enforce-eager",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist"),
        ("{", "cannot be read"),
        ("[]", "is not a profile"),
        ('{"breakeven_profile": 9, "flags": []}', "format 1"),
        ('{"breakeven_profile": 1, "flags": "--x"}', "must be a list of texts"),
        ('{"breakeven_profile": 1, "flags": ["--x", 4]}', "write numbers in quotes"),
    ],
)
def test_other_files_are_refused(tmp_path, text, said):
    path = tmp_path / "profile.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ProfileError, match=said):
        tuned.read(path)


FLAGS = ("--max-num-seqs", "512", "--quantization", "fp8", "--no-async-scheduling")


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ((), FLAGS),
        (("--max-num-seqs=7",), ("--quantization", "fp8", "--no-async-scheduling")),
        (("--async-scheduling",), ("--max-num-seqs", "512", "--quantization", "fp8")),
        (("--max_num_seqs", "7", "--quantization", "awq"), ("--no-async-scheduling",)),
        (("7", "--other"), FLAGS),
    ],
)
def test_a_persons_own_flags_win(own, left):
    assert tuned.remove_flags(FLAGS, own) == left


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        (FLAGS, 512),
        (("--max-num-seqs=7",), 7),
        (("--max-num-seqs", "1", "--max-num-seqs", "2"), 2),
        (("--max-num-seqs",), None),
        (("--max-num-seqs", "many"), None),
        ((), None),
    ],
)
def test_a_number_is_read_in_either_form(flags, value):
    assert tuned.number(flags, "--max-num-seqs") == value


def test_the_file_is_json(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    tuned.write(tmp_path / "p", [], tmp_path, {})
    assert json.loads((tmp_path / "p").read_text())["breakeven_profile"] == 1


@pytest.mark.parametrize(
    "flags",
    [
        ["--host", "0.0.0.0"],
        ["--max-num-seqs", "512", "--middleware=evil.run"],
        ["--trust_remote_code"],
        ["--no-trust-remote-code"],
        ["--kv-transfer-config.kv_connector_module_path", "evil"],
        ["--api-key", "known"],
    ],
)
def test_a_profile_says_nothing_of_code_and_addresses(tmp_path, flags):
    """It is a file that travels: whoever starts an engine with it expects it to be faster."""
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"breakeven_profile": 1, "flags": flags}))
    with pytest.raises(ProfileError, match="does not belong in a profile"):
        tuned.read(path)


def test_what_a_search_was_told_of_addresses_is_not_written(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    path = tmp_path / "profile.json"
    tuned.write(path, ["--trust-remote-code", "--max-num-seqs", "512", "--port", "1"], tmp_path, {})
    assert tuned.read(path).flags == ("--max-num-seqs", "512")
