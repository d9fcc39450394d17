"""Saved profiles are found under the same circumstances only."""

from dataclasses import replace

import pytest

from backends.engine.profile import StepFit
from backends.engine.profiles import hardware, load, profile_context, save
from backends.stepmodel import FittedStepModel

STEP = FittedStepModel(0.006, 2e-4, 3e-8, 2e-5, 0.004)
MADE = StepFit(STEP, STEP, ("c_s",), 0.05, 0.2, 14, 3.2)


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "state" / "profiles"


def test_a_profile_comes_back_and_nothing_is_written_beside_its_model(model, kept):
    under = profile_context(model, engine_version="0.32.0", flags=("--enforce-eager",))
    path = save(kept, model, under, MADE)
    assert path.parent == kept
    assert load(kept, model, under) == MADE
    assert list(model.parent.iterdir()) == [model]


@pytest.mark.parametrize(
    "change",
    [
        {"engine_version": "0.33.0"}, {"flags": ()}, {"hardware": "another"},
        {"model_sha256": "another"},
    ],
)  # fmt: skip
def test_under_other_circumstances_nothing_is_found(model, kept, change):
    under = profile_context(model, engine_version="0.32.0", flags=("--enforce-eager",))
    save(kept, model, under, MADE)
    assert load(kept, model, replace(under, **change)) is None


@pytest.mark.parametrize("text", ["", "{}", '{"profile": {"step": {}}}', '{"profile": 1}'])
def test_an_unreadable_file_is_as_none(model, kept, text):
    under = profile_context(model, engine_version="0.32.0", flags=())
    save(kept, model, under, MADE).write_text(text)
    assert load(kept, model, under) is None


def test_a_changed_model_has_other_circumstances(model):
    before = profile_context(model, engine_version="1", flags=())
    (model / "config.json").write_text('{"layers": 2}')
    assert profile_context(model, engine_version="1", flags=()).key() != before.key()


def test_hardware_is_named():
    assert len(hardware()) > 3
