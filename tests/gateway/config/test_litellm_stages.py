"""Fallbacks, order and weights of a LiteLLM proxy as stages, timeouts and shares of ours."""

import pytest

from gateway.config.litellm_import import carry_over

EVERY = ["failure", "context", "content_policy"]


def deployed(name: str, model: str | None = None, **params) -> dict:
    return {"model_name": name, "litellm_params": {"model": f"openai/{model or name}", **params}}


def imported(*entries: dict, **sections):
    given = {"model_list": list(entries), **sections}
    return carry_over(given, gpu={"type": "H100"}, provider_of=lambda _: None)


def models(*entries: dict, **sections) -> dict:
    return imported(*entries, **sections).document["models"]


ABC = [deployed(name) for name in "abc"]


def stages(model: dict) -> list[tuple[object, list[str]]]:
    return [(stage["after"], stage["targets"]) for stage in model.get("then", [])]


def test_each_kind_of_fallback_has_its_cause_and_its_order() -> None:
    settings = {
        "fallbacks": [{"a": ["b", "c"]}],
        "context_window_fallbacks": [{"b": ["a"]}],
        "content_policy_fallbacks": [{"c": ["a"]}],
    }
    found = models(*ABC, litellm_settings=settings)
    assert stages(found["a"]) == [("failure", ["openai/b"]), ("failure", ["openai/c"])]
    assert stages(found["b"]) == [("context", ["openai/a"])]
    assert stages(found["c"]) == [("content_policy", ["openai/a"])]
    assert [found[name]["targets"] for name in "abc"] == [[f"openai/{name}"] for name in "abc"]


def test_without_other_kinds_a_fallback_is_for_all_of_them_as_there() -> None:
    """LiteLLM: "No context_window_fallback set. Defaulting to fallbacks, if available"."""
    assert stages(models(*ABC, router_settings={"fallbacks": [{"a": "b"}]})["a"]) == [
        (EVERY, ["openai/b"])
    ]


@pytest.mark.parametrize("everybody", [{"default_fallbacks": ["c"]}, {"fallbacks": [{"*": ["c"]}]}])
def test_default_fallbacks_are_of_each_model_without_its_own(everybody) -> None:
    named = [*everybody.get("fallbacks", []), {"a": ["b"]}]
    found = models(*ABC, litellm_settings={**everybody, "fallbacks": named})
    assert stages(found["a"]) == [(EVERY, ["openai/b"])]
    assert stages(found["b"]) == [(EVERY, ["openai/c"])]
    assert stages(found["c"]) == []  # itself


def test_router_settings_win_and_a_passed_through_name_is_a_fallback() -> None:
    entries = [*ABC, {"model_name": "openai/*", "litellm_params": {"model": "openai/*"}}]
    found = models(
        *entries,
        litellm_settings={"fallbacks": [{"a": ["b"]}]},
        router_settings={"fallbacks": [{"a": ["openai/gpt-4.1"]}]},
    )
    assert stages(found["a"]) == [(EVERY, ["openai/gpt-4.1"])]


def test_order_is_stages_and_a_fallback_has_them_all() -> None:
    entries = [
        deployed("a", "one", order=2), deployed("a", "two", order=1), deployed("a", "last"),
        deployed("b"),
    ]  # fmt: skip
    found = models(*entries, router_settings={"fallbacks": [{"b": ["a"]}]})
    assert found["a"]["targets"] == ["openai/two"]
    assert stages(found["a"]) == [("failure", ["openai/one"]), ("failure", ["openai/last"])]
    assert [targets for _, targets in stages(found["b"])] == [
        ["openai/two"], ["openai/one"], ["openai/last"],
    ]  # fmt: skip
    told = imported(*entries).notes
    assert [(note.place, note.rank()) for note in told] == [("models.a.order", "error")]


def test_weights_are_shares_of_a_rule_and_some_alone_are_told() -> None:
    found = imported(deployed("a", "one", weight=3), deployed("a", "two", weight=1), deployed("b"))
    rule, last = found.document["policies"]
    assert rule["match"] == {"models": ["a"]}
    assert rule["weights"] == {"openai/one": 3.0, "openai/two": 1.0}
    assert last == {"name": "default", "otherwise": "best_effort"}
    found = imported(deployed("a", "one", weight=3), deployed("a", "two"))
    assert len(found.document["policies"]) == 1
    assert [note.rank() for note in found.notes] == ["error"]


def test_timeouts_are_a_models_own_and_a_fallback_keeps_its_own() -> None:
    entries = [deployed("a", timeout=120, stream_timeout=3), deployed("b"), deployed("c")]
    found = models(
        *entries, litellm_settings={"request_timeout": 5, "fallbacks": [{"a": ["b"]}, {"c": ["b"]}]}
    )
    assert found["a"]["timeouts"] == {"head_s": 3.0, "whole_s": 120.0}
    assert found["a"]["then"][0]["timeouts"] == {"head_s": 5.0, "whole_s": 5.0}
    assert "timeouts" not in found["c"]["then"][0]
    told = imported(deployed("a", "x", timeout=5), deployed("a", "y", timeout=9))
    assert told.document["models"]["a"]["timeouts"] == {"head_s": 9.0, "whole_s": 9.0}
    assert [(note.place, note.rank()) for note in told.notes] == [("models.a.timeouts", "error")]


@pytest.mark.parametrize(
    ("settings", "rank", "words"),
    [
        ({"fallbacks": [{"a": ["none"]}]}, "error", "`a` to `none`"),
        ({"fallbacks": [{"none": ["a"]}]}, "error", "`none` to `a`"),
        ({"default_fallbacks": ["none"]}, "error", "to `none`"),
        ({"content_policy_fallbacks": [{"a": ["none"]}]}, "error", "`a` to `none`"),
        ({"fallbacks": [{"a": [{"model": "b", "temperature": 0}]}]}, "error", "nothing is changed"),
        (
            {
                "fallbacks": [{"a": ["b"]}, {"b": ["c"]}],
                "content_policy_fallbacks": [{"b": ["a"]}],
                "context_window_fallbacks": [{"c": ["b"]}],
            },
            "error",
            "other targets than the stages: a: failure, b: content_policy",
        ),
    ],
)
def test_what_of_a_fallback_is_lost_is_told(settings, rank, words) -> None:
    found = imported(*ABC, litellm_settings=settings)
    assert any(note.rank() == rank and words in note.text for note in found.notes), found.notes


@pytest.mark.parametrize(
    ("fallbacks", "depth", "followers"),
    [
        ([{"a": ["b"]}, {"b": ["c"]}], None, "bc"),
        ([{"a": ["b", "c"]}, {"b": ["d"]}], None, "bdc"),  # a fallback's own come first
        ([{"a": ["b"]}, {"b": ["a", "c"]}, {"c": ["b", "d"]}], None, "bcd"),  # round and round
        ([{"a": ["b"]}, {"a": ["c"]}], None, "b"),  # the first one counts there
        ([{"a": ["b"]}, {"b": ["c"]}, {"c": ["d"]}], 2, "bc"),
        ([{"a": ["b", "c", "d"]}], 1, "bcd"),  # a list is no depth
        ([{"a": ["b"]}, {"b": ["c"]}], 0, ""),
    ],
)
def test_a_fallback_of_a_fallback_is_a_later_stage(fallbacks, depth, followers) -> None:
    """It was dropped, with a warning and exit 0."""
    settings = {"fallbacks": fallbacks} | ({} if depth is None else {"max_fallbacks": depth})
    found = imported(*ABC, deployed("d"), router_settings=settings)
    asked = [targets for _, targets in stages(found.document["models"]["a"])]
    assert asked == [[f"openai/{name}"] for name in followers]
    assert found.notes == []


def test_a_long_chain_is_kept_as_far_as_a_model_has_stages() -> None:
    names = "abcdefghijk"
    fallbacks = [{"a": [*names[1:]]}]
    found = imported(*map(deployed, names), router_settings={"fallbacks": fallbacks})
    assert len(found.document["models"]["a"]["then"]) == 8
    assert [(note.place, note.rank()) for note in found.notes] == [("models.a.then", "error")]


def test_a_section_that_states_fallbacks_has_them_alone_and_one_is_not_read() -> None:
    found = imported(
        *ABC,
        litellm_settings={"fallbacks": [{"b": ["c"]}]},
        router_settings={"fallbacks": [{"a": ["b"]}]},
        general_settings={"fallbacks": [{"c": ["a"]}]},
    )
    assert [len(stages(found.document["models"][name])) for name in "abc"] == [1, 0, 0]
    assert [note.rank() for note in found.notes] == ["note"]


def test_an_alias_has_the_fallbacks_of_its_own_name_alone() -> None:
    """LiteLLM looks fallbacks up by the name that was asked for."""
    settings = {
        "fallbacks": [{"a": ["b"]}, {"second": ["c"]}],
        "model_group_alias": {"first": "a", "second": "a", "third": "b"},
    }
    found = models(*ABC, router_settings=settings)
    assert found["first"] == {"targets": ["openai/a"]}
    assert stages(found["second"]) == [(EVERY, ["openai/c"])]
    assert found["third"] == {"same_as": "b"}


def test_models_passed_through_have_no_default_fallbacks_and_that_is_told() -> None:
    entries = [*ABC, {"model_name": "openai/*", "litellm_params": {"model": "openai/*"}}]
    found = imported(*entries, litellm_settings={"default_fallbacks": ["a"]})
    assert [(note.place, note.rank()) for note in found.notes] == [("models.openai/*", "error")]


def test_members_that_are_sent_with_each_request_are_kept_but_for_those_of_the_gateway() -> None:
    extra = {"top_k": 4, "n": 3}
    found = imported(deployed("a", extra_body=extra), deployed("b"))
    assert found.document["providers"]["openai"]["extra_body"] == {"top_k": 4}
    assert found.document["models"]["b"]["targets"] == ["openai-2/b"]  # is sent none
    assert [(note.place, note.rank()) for note in found.notes] == [
        ("model_list[0].litellm_params.extra_body.n", "error")
    ]
