"""A worker has a cache where its configuration says so, and conditions are asked there, too."""

import pytest

from gateway.worker.cached_answers import open_cache

WORDS = "x-breakeven-cache"
ON = {"enabled": True, "models": ["api"]}
BY_WORDS = [
    {"name": "long", "residency": "internal_only",
     "match": {"models": ["api", "own"], "when": "prompt_tokens > 200"}},
    {"name": "plain"},
]  # fmt: skip


@pytest.fixture
def stack(running, tmp_path):
    with running(tmp_path, response_cache=ON, policies=BY_WORDS) as stack:
        yield stack


def test_it_is_for_the_named_models_alone(stack) -> None:
    for model, said in (("api", ["miss", "hit"]), ("own", [None, None])):
        answers = [stack.chat(model, temperature=0, max_tokens=2) for _ in range(2)]
        assert [answer.headers.get(WORDS) for answer in answers] == said
    shown = stack.get("/metrics").text
    assert 'breakeven_response_cache_total{result="hit"} 1.0' in shown


def test_there_is_none_while_it_is_off(stack) -> None:
    section = stack.settings.response_cache.model_copy(update={"enabled": False})
    settings = stack.settings.model_copy(update={"response_cache": section})
    assert open_cache(settings, 0, {}, None, None, None) is None
