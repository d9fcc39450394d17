"""What no target gets is named or refused, and nothing else is touched."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.http.member_rules import ALLOWABLE, DENIED, STRICT, MemberRules


def opened(**members):
    return decode_members(json.dumps({"model": "m", **members}).encode())


@given(
    st.dictionaries(st.sampled_from(sorted(DENIED)), st.sampled_from(["x", 7, None, False, {}])),
    st.dictionaries(st.text("abc_", min_size=1), st.integers()),
)
def test_each_denied_member_is_refused_named_or_null(denied, others) -> None:
    others = {name: value for name, value in others.items() if name not in DENIED}
    members = opened(**others, **denied)
    refused, ignored = "", ()
    try:
        ignored = STRICT.drop_denied(members)
    except RequestError as error:
        refused = str(error.param)
    if refused:
        assert denied[refused], "an empty value refuses nobody"
        return
    assert set(members) == {"model", *others}
    assert set(ignored) == {name for name, value in denied.items() if value is not None}


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"best_of": 3}, "best_of"),
        ({"best_of": 3, "n": 2}, "best_of"),
        ({"prompt_token_ids": [1]}, "prompt_token_ids"),
        ({"chat_template": "{{ x }}"}, "chat_template"),
        ({"mm_processor_kwargs": {"max_pixels": 9}}, "mm_processor_kwargs"),
        ({"prompt_logprobs": 1}, "prompt_logprobs"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_its_name(members, param) -> None:
    with pytest.raises(RequestError) as caught:
        STRICT.drop_denied(opened(**members))
    assert (caught.value.param, f"`{param}`" in str(caught.value)) == (param, True)


@pytest.mark.parametrize("n", [None, 2])
def test_as_many_best_answers_as_are_asked_for_are_no_more(n) -> None:
    members = opened(best_of=n or 1, **({"n": n} if n else {}))
    assert STRICT.drop_denied(members) == ()
    assert "best_of" not in members


def test_an_operator_allows_and_refuses_by_name() -> None:
    rules = MemberRules(["prompt_logprobs"], ["top_k", "api_key", "chat_template_kwargs"])
    members = opened(prompt_logprobs=1)
    assert (rules.drop_denied(members), set(members)) == ((), {"model", "prompt_logprobs"})
    for name in ("top_k", "api_key", "chat_template_kwargs"):
        with pytest.raises(RequestError) as caught:
            rules.drop_denied(opened(**{name: 5}), ("chat_template_kwargs",))
        assert caught.value.param == name


def test_a_kind_may_judge_a_member_itself() -> None:
    members = opened(chat_template_kwargs={"a": 1}, rid="x")
    assert STRICT.drop_denied(members, ("chat_template_kwargs",)) == ("rid",)
    assert set(members) == {"model", "chat_template_kwargs"}


def test_who_is_called_is_allowed_by_nobody() -> None:
    assert ALLOWABLE.isdisjoint(("api_key", "api_base", "cache_salt", "priority", "headers"))
