"""What an operator may say, judged before it is stored."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from gateway.config.settings import Settings, parse
from gateway.control import override_changes as verbs
from ledger.database import make_engine, migrate
from ledger.overrides import API, DISABLED, OWN

CONFIG = """
models:
  chat: {targets: ["pool:a", "openai/gpt-4o-mini"], compare_with: [x]}
  inside: {targets: ["pool:a"], compare_with: [x]}
  talk: {same_as: chat}
  "openai/*": passthrough
pools:
  a: {engine: {kind: simulated, model: x, replicas: 2}, gpu: {type: H200}}
  b: {engine: {kind: vllm, endpoints: ["http://127.0.0.1:9/v1"]}, gpu: {type: H200}}
providers: {openai: {}}
"""
ANN = verbs.OverrideAuthor("ann", "why", 1000)


@pytest.fixture
def settings() -> Settings:
    return parse(CONFIG, name="t")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    url = f"sqlite:///{tmp_path}/ledger.db"
    migrate(url)
    return make_engine(url)


def test_all_that_can_be_disabled_has_a_name(settings) -> None:
    assert verbs.target_names(settings) == [
        "openai", "openai/gpt-4o-mini", "pool:a", "pool:a/0", "pool:a/1", "pool:b", "pool:b/0",
    ]  # fmt: skip


def test_a_target_is_disabled_and_enabled_again(engine, settings) -> None:
    stored = verbs.disable(engine, settings, "pool:a/1", ANN._replace(until_us=5000))
    assert (stored.subject, stored.says, stored.until_us) == ("target:pool:a/1", DISABLED, 5000)
    assert [item.subject for item in verbs.overrides_in_force(engine, 4999)] == ["target:pool:a/1"]
    assert verbs.overrides_in_force(engine, 5000) == ()
    verbs.disable(engine, settings, "pool:a", ANN)
    assert [item.subject for item in verbs.enable(engine, "pool:a", ANN)] == [
        "target:pool:a/1", "target:pool:a",
    ]  # fmt: skip
    assert verbs.overrides_in_force(engine, 2000) == ()


def test_what_is_said_of_a_pool_is_not_taken_back_of_one_engine(engine, settings) -> None:
    verbs.disable(engine, settings, "pool:a", ANN)
    with pytest.raises(verbs.OverrideError, match="target `pool:a/0` is not disabled"):
        verbs.enable(engine, "pool:a/0", ANN)


@pytest.mark.parametrize("name", ["pool:c", "pool:a/2", "anthropic", "gpt-4o-mini", ""])
def test_an_unknown_target_is_named_with_those_there_are(engine, settings, name) -> None:
    with pytest.raises(verbs.OverrideError, match=r"there is no target .*pool:a/0"):
        verbs.disable(engine, settings, name, ANN)


def test_a_model_that_is_passed_through_may_be_disabled(engine, settings) -> None:
    assert verbs.disable(engine, settings, "openai/o3", ANN).subject == "target:openai/o3"


def test_a_route_is_forced_for_one_model_by_any_of_its_names(engine, settings) -> None:
    assert verbs.force(engine, settings, API, "talk", ANN).subject == "model:chat"
    assert verbs.force(engine, settings, OWN, None, ANN).subject == "model:*"
    verbs.release(engine, settings, "chat", ANN)
    assert [item.subject for item in verbs.overrides_in_force(engine, 2000)] == ["model:*"]


def test_what_would_refuse_every_request_is_refused(engine, settings) -> None:
    with pytest.raises(verbs.OverrideError, match="`inside` has no api target"):
        verbs.force(engine, settings, API, "inside", ANN)
    with pytest.raises(verbs.OverrideError, match="no model named `nobody`"):
        verbs.force(engine, settings, API, "nobody", ANN)
    with pytest.raises(verbs.OverrideError, match="the route of all models is not forced"):
        verbs.release(engine, settings, None, ANN)
    assert verbs.overrides_in_force(engine, 2000) == ()


def test_models_that_are_left_without_a_target_are_named(engine, settings) -> None:
    verbs.disable(engine, settings, "pool:a", ANN)
    assert verbs.unserved_models(settings, verbs.overrides_in_force(engine, 2000)) == ["inside"]
    verbs.force(engine, settings, OWN, None, ANN)
    assert verbs.unserved_models(settings, verbs.overrides_in_force(engine, 2000)) == [
        "chat",
        "inside",
    ]


@pytest.mark.parametrize(
    ("words", "us"),
    [("90s", 90e6), ("30m", 1.8e9), ("2h", 7.2e9), (" 7d ", 604.8e9)],
)
def test_spans(words, us) -> None:
    assert verbs.span_us(words) == us


@pytest.mark.parametrize("words", ["366d", "8761h", "999999d"])
def test_what_lasts_too_long(words) -> None:
    with pytest.raises(verbs.OverrideError, match="the maximum is 365d"):
        verbs.span_us(words)


@pytest.mark.parametrize("words", ["", "30", "m", "0m", "-1h", "1.5h", "1y", "9999999s"])
def test_what_is_no_span(words) -> None:
    with pytest.raises(
        verbs.OverrideError, match=r"invalid duration `.*`: write 90s, 30m, 2h or 7d"
    ):
        verbs.span_us(words)
