"""What a search may turn: real flags, defaults first, nothing that this machine cannot have."""

import json
from pathlib import Path

import pytest

from backends.engine.environment import Environment
from backends.engine.flags import known_flags
from backends.engine.ladder import LadderHost
from backends.engine.tunespace import DEFAULT, ORDER, tuning_space

GPU = LadderHost(gpu=True, modules=frozenset({"numba"}))


def names(found):
    return [finding.name for finding in found]


def test_each_dimension_begins_with_the_default_and_names_are_unique():
    for item in tuning_space(GPU):
        assert item.choices[0].name == DEFAULT
        assert item.choices[0].flags == ()
        assert len({choice.name for choice in item.choices}) == len(item.choices)
    assert names(tuning_space(GPU)) == list(ORDER)


def test_a_processor_has_fewer():
    assert names(tuning_space(LadderHost(gpu=False))) == ["kv", "sequences", "budget", "async"]


def test_exact_leaves_out_what_changes_numbers():
    found = tuning_space(GPU, exact=True)
    assert {"weights", "kv"} & set(names(found)) == set()
    assert all(choice.exact for finding in found for choice in finding.choices)


def test_quantized_weights_are_not_quantized_again():
    assert "weights" not in names(tuning_space(LadderHost(gpu=True, quantized=True)))


def test_some_may_be_picked():
    assert names(tuning_space(GPU, names=("budget", "kv"))) == ["kv", "budget"]


def test_flags_that_hold_json_hold_json():
    words = [flag for item in tuning_space(GPU) for choice in item.choices for flag in choice.flags]
    for word in words:
        if word.startswith("{"):
            assert json.loads(word)


@pytest.mark.part("vllm")
def test_this_vllm_has_every_flag(engine_python: Path):
    known = known_flags(Environment(engine_python.parent.parent))
    for item in tuning_space(GPU):
        for choice in item.choices:
            assert {word for word in choice.flags if word[:2] == "--"} <= known
