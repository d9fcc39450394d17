"""A fitted engine comes back from its file; what is none is told."""

import pytest

from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import ShapeFileError, load, profile_of, save


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_it_comes_back(tmp_path, name):
    save(tmp_path / "engine.json", PROFILES[name].shape)
    assert load(tmp_path / "engine.json") == PROFILES[name].shape


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no engine model"),
        ("{}", "step"),
        ('{"step": {"a_s": 1}}', "b_s"),
        (
            '{"step": {"a_s": 1, "b_s": 1, "c_s": 1, "d_s": 1, "t0_s": 1}, "blocks": 1}',
            "1 blocks of KV",
        ),
        (
            '{"step": {"a_s": 0, "b_s": 1, "c_s": 1, "d_s": 1, "t0_s": 1}, "blocks": 9}',
            "`a_s` is the least",
        ),
    ],
)
def test_what_is_no_model_is_told(tmp_path, text, said):
    (tmp_path / "engine.json").write_text(text)
    with pytest.raises(ShapeFileError) as raised:
        load(tmp_path / "engine.json")
    assert said in str(raised.value)


def test_no_file(tmp_path):
    with pytest.raises(ShapeFileError, match="No such file"):
        load(tmp_path / "none.json")


def test_a_word_is_a_profile_or_a_file(tmp_path):
    (name, known), path = next(iter(PROFILES.items())), tmp_path / "ours.json"
    save(path, known.shape)
    assert profile_of(name) is known
    found = profile_of(str(path))
    assert (found.name, found.shape, found.source) == ("ours", known.shape, f"fitted: {path}")
    assert [profile_of(word) for word in (None, "nobody", str(tmp_path))] == [None] * 3
    path.write_text("{}")
    with pytest.raises(ShapeFileError):
        profile_of(str(path))
