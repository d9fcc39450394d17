"""The command line: only flags that exist, ours only where the person gave none."""

import json
from dataclasses import replace

import pytest

from backends.engine.flags import BadFlags, command, known_flags, read_help

HELP = """\
usage: api_server.py [-h] [--model MODEL] [--runner {auto,draft}]

options:
  -h, --help            show this help message and exit
  --enable-auto-tool-choice, --no-enable-auto-tool-choice
                        Needs `--tool-call-parser` to name a parser.
  --tensor-parallel-size TENSOR_PARALLEL_SIZE, -tp TENSOR_PARALLEL_SIZE
  --speculative-config SPECULATIVE_CONFIG, -sc SPECULATIVE_CONFIG
"""


def test_options_are_read_where_they_are_defined_not_where_they_are_mentioned():
    assert read_help(HELP) == {
        "--help", "--enable-auto-tool-choice", "--no-enable-auto-tool-choice",
        "--tensor-parallel-size", "--speculative-config",
    }  # fmt: skip


@pytest.fixture
def launch(fake_spec):
    return replace(fake_spec().launch, flags=())


def words_of(launch, port=8100) -> list[str]:
    return command(launch, known_flags(launch.environment), port)


def test_only_flags_that_exist_are_added(launch):
    words = words_of(launch)
    assert words[words.index("serve") + 1] == str(launch.model)
    assert "--model" not in words  # vLLM is to drop it
    assert words[words.index("--port") + 1] == "8100"
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert "--enforce-eager" in words
    assert "--enable-prompt-tokens-details" not in words  # the stand-in does not know it


def test_an_engine_is_told_where_its_spans_go(launch):
    assert "--otlp-traces-endpoint" not in words_of(launch)
    words = words_of(replace(launch, traces="http://c:4318/v1/traces"))
    assert words[words.index("--otlp-traces-endpoint") + 1] == "http://c:4318/v1/traces"


@pytest.mark.parametrize(
    ("flag", "ours"),
    [
        (("--no-enforce-eager",), "--enforce-eager"),
        (("--port=9",), "--port"),
        (("--shutdown-timeout", "3"), "--shutdown-timeout"),
    ],
)
def test_a_persons_flag_wins_over_ours(launch, flag, ours):
    words = words_of(replace(launch, flags=flag))
    assert words[-len(flag) :] == list(flag)
    assert ours not in words[: -len(flag)]


def test_an_unknown_flag_is_refused_with_the_nearest(launch):
    with pytest.raises(BadFlags, match="no flag --max-model-length; did you mean --max-model-len"):
        words_of(replace(launch, flags=("--max-model-length", "5")))


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer_config.json"])
def test_tools_are_parsed_where_the_template_writes_them_in_that_form(launch, name):
    assert "--tool-call-parser" not in words_of(launch)
    (launch.model / name).write_text(json.dumps({"chat_template": "<tool_call>{{ x }}"}))
    words = words_of(launch)
    assert words[words.index("--tool-call-parser") + 1] == "hermes"


@pytest.mark.parametrize("kind", ["embedding", "rerank"])
def test_a_model_that_embeds_or_ranks_is_pooled(launch, kind):
    words = words_of(replace(launch, kind=kind))
    assert words[words.index("--runner") + 1] == "pooling"


def test_a_model_that_writes_down_is_not(launch):
    assert "--runner" not in words_of(replace(launch, kind="transcription"))


def test_the_answer_is_kept_with_the_environment(launch):
    known = known_flags(launch.environment)
    launch.environment.python.unlink()
    assert known_flags(launch.environment) == known


def test_an_engine_that_does_not_run_says_why(launch):
    launch.environment.python.write_text("#!/bin/sh\necho 'ImportError: libfoo'; exit 1\n")
    with pytest.raises(BadFlags, match="libfoo"):
        known_flags(launch.environment)


def test_flags_are_known_where_they_cannot_be_kept(fake_spec):
    """A full disk, or an environment that somebody else owns."""
    environment = fake_spec().launch.environment
    (environment.directory / "breakeven-flags.json").mkdir()
    assert "--model" in known_flags(environment)
