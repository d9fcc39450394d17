"""What a client asked for in texts: bounds before dispatch, and features."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds import KIND_PATHS
from gateway.kinds.chat import read_chat
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.request.request_parser import body_for
from router.request_kinds import RequestKind
from router.types import Feature

MESSAGES = [{"role": "user", "content": "hello"}]


def asked(path: str = "/v1/chat/completions", **members: Any) -> InferenceRequest:
    if path == "/v1/chat/completions":
        members.setdefault("messages", MESSAGES)
    text = json.dumps({"model": "m", **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, max_n=8))


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"model": "alpha/x\0y"}, "model"),
        ({"model": "alpha/x\r\ny: z"}, "model"),
        ({"model": "alpha/x\x7f"}, "model"),
        ({"model": "alpha/x\u2028y"}, "model"),
        ({"model": "alpha/" + "x" * 251}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"n": 0}, "n"),
        ({"n": 10**9}, "n"),
        ({"n": "2"}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"max_completion_tokens": 2**64}, "max_completion_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": "yes"}, "stream"),
        ({"stop": 1}, "stop"),
        ({"stop": {"a": 1}}, "stop"),
        ({"stop": False}, "stop"),
        ({"stop": ["a", 1]}, "stop"),
        ({"use_beam_search": True}, "use_beam_search"),
    ],
)
def test_bad_members_are_named(members: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(**members)
    assert caught.value.row.status == 400
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("members", "feature"),
    [
        ({"tools": [{"type": "function"}]}, Feature.TOOLS),
        ({"response_format": {"type": "json_schema"}}, Feature.JSON_SCHEMA),
        ({"response_format": {"type": "json_object"}}, Feature.JSON_SCHEMA),
        ({"logprobs": True}, Feature.LOGPROBS),
        ({"n": 2}, Feature.N),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            Feature.IMAGES,
        ),
    ],
)
def test_features_are_seen(members: dict[str, Any], feature: Feature) -> None:
    assert asked(**members).features == {feature}


def part(**members: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image_url", **members}]}]


@pytest.mark.parametrize(
    ("messages", "fetched"),
    [
        (part(image_url={"url": "data:image/png;base64,AAAA"}), False),
        (part(image_url={"url": "DATA:image/png;base64,AAAA"}), False),
        (part(image_url={"url": "http://169.254.169.254/latest/meta-data"}), True),
        (part(image_url="https://example.com/x.png"), True),
        (part(image_url={"url": "file:///etc/passwd"}), True),
        (part(image_url={"url": " http://x"}), True),
        (part(type="video_url", video_url={"url": "http://x"}), True),
        (part(type="audio_url", audio_url={"url": "http://x"}), True),
        (part(text='"url": "http://x"', image_url={"url": "data:,"}), False),
    ],
)
def test_addresses_that_a_target_would_fetch_are_seen(messages, fetched: bool) -> None:
    assert (Feature.MEDIA_URLS in asked(messages=messages).features) == fetched
    assert Feature.IMAGES in asked(messages=messages).features


def test_escapes_hide_no_address() -> None:
    text = json.dumps({"model": "m", "messages": part(image_url={"url": "http://x"})})
    hidden = text.replace("image_url", "image\\u005furl").replace('"url"', '"\\u0075rl"')
    read_ = read_chat(decode_members(hidden.encode()), max_n=8, session=None)
    assert read_.features == {Feature.IMAGES, Feature.MEDIA_URLS}
    assert bytes(read_.members["messages"]) in hidden.encode(), "the bytes stay the client's"


@pytest.mark.parametrize("name", ["alpha/" + "x" * 250, "alpha/m:8b@v1 (beta)", "alpha/größe-模型"])
def test_names_of_models_are_taken_as_they_are(name: str) -> None:
    assert asked(model=name).model == name


def test_words_in_a_text_are_no_features() -> None:
    quoted = [{"role": "user", "content": 'say "image_url" and "tools"'}]
    assert asked(messages=quoted, tools=[], response_format={"type": "text"}).features == set()


def test_kinds_have_their_own_defaults() -> None:
    assert asked().max_tokens is None
    completion = asked("/v1/completions", prompt="once")
    assert (completion.kind, completion.max_tokens, completion.prompts) == (
        RequestKind.COMPLETION,
        16,
        1,
    )
    assert asked("/v1/completions", prompt=["a", "b"]).prompts == 2
    assert asked("/v1/completions", prompt=[1, 2, 3]).prompts == 1
    assert asked("/v1/embeddings", input="x").max_tokens == 0


@pytest.mark.parametrize(
    ("prompt", "n", "prompts"),
    [
        ("a", 8, 1),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], 8, 1),
        (["a"] * 8, 1, 8),
        ([[1, 2], [3]], 4, 2),
        (["a", "b"], None, 2),
    ],
)
def test_answers_of_all_prompts_are_counted(prompt: Any, n: int | None, prompts: int) -> None:
    completion = asked("/v1/completions", prompt=prompt, n=n)
    assert (completion.prompts, completion.n) == (prompts, n or 1)


@pytest.mark.parametrize(
    ("prompt", "n"),
    [(["a"] * 5000, 3), (["a"] * 9, 1), (["a"] * 3, 3), ([[1]] * 9, 1), ([[1]] * 5, 2)],
)
def test_more_answers_than_the_limit_are_refused(prompt: Any, n: int) -> None:
    with pytest.raises(RequestError, match="may ask for 8") as caught:
        asked("/v1/completions", prompt=prompt, n=n)
    assert (caught.value.row.status, caught.value.param) == (400, "prompt")
    assert str(n * len(prompt)) in caught.value.message


@pytest.mark.parametrize(
    "prompt",
    [[], 5, {"a": 1}, [None], [True], [1, "a"], ["a", 1], ["a", ["b"]], [[1], "a"], [[1], [[2]]],
     [["a", "b", "c"]], [{"prompt": "a"}], [[]], [[1], []]],
)  # fmt: skip
@pytest.mark.parametrize(("path", "name"), [("completions", "prompt"), ("embeddings", "input")])
def test_lists_that_could_hide_prompts_are_refused(path: str, name: str, prompt: Any) -> None:
    with pytest.raises(RequestError) as caught:
        asked(f"/v1/{path}", **{name: prompt})
    assert (caught.value.row.status, caught.value.param) == (400, name)


@pytest.mark.parametrize("members", [{"best_of": 1000}, {"prompt_embeds": ["x"] * 1000}])
def test_candidates_that_would_be_thrown_away_are_refused(members: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        asked("/v1/completions", prompt="a", **members)
    assert caught.value.param in members
    completion = asked("/v1/completions", prompt="a", best_of=1, prompt_embeds=None)
    body = body_for(completion, upstream_model="u", own=True, max_tokens_cap=None, salt=None)
    assert set(json.loads(body)) == {"model", "prompt", "max_tokens"}


@pytest.mark.parametrize(
    "name", ["previous_response_id", "conversation", "cached_content", "cachedContent"]
)
@pytest.mark.parametrize(
    ("path", "prompt"),
    [("chat/completions", {}), ("completions", {"prompt": "a"}), ("embeddings", {"input": "a"})],
)
def test_what_one_provider_keeps_cannot_be_gone_on_from(path: str, prompt: Any, name: str) -> None:
    with pytest.raises(RequestError, match="whole conversation") as caught:
        asked(f"/v1/{path}", **prompt, **{name: "resp_1"})
    assert (caught.value.row.code, caught.value.param) == ("unsupported_parameter", name)
    asked(f"/v1/{path}", **prompt, **{name: None})


@pytest.mark.parametrize(
    ("path", "prompt", "second"),
    [
        ("chat/completions", {}, {"prompt": "a"}),
        ("chat/completions", {}, {"input": "a"}),
        ("completions", {"prompt": "a"}, {"messages": MESSAGES}),
        ("embeddings", {"input": "a"}, {"messages": MESSAGES}),
        ("embeddings", {"input": "a"}, {"prompt": "a"}),
    ],
)
def test_a_second_prompt_is_refused_for_one_of_them_would_not_be_judged(
    path: str, prompt: Any, second: Any
) -> None:
    name = next(iter(second))
    with pytest.raises(RequestError, match="Leave it out") as caught:
        asked(f"/v1/{path}", **prompt, **second)
    assert (caught.value.row.code, caught.value.param) == ("unsupported_parameter", name)
    asked(f"/v1/{path}", **prompt, **{name: None})


def test_of_two_limits_the_larger_is_held_for() -> None:
    """Some targets read one name alone: what the other says is no bound there."""
    assert asked(max_completion_tokens=1, max_tokens=9000).max_tokens == 9000
    assert asked(max_completion_tokens=9000, max_tokens=1).max_tokens == 9000


def test_a_search_with_a_fee_is_something_a_target_must_offer() -> None:
    assert asked(web_search_options={}).features == {Feature.HOSTED_TOOLS}
    hosted = {"type": "web_search"}
    assert asked(tools=[hosted]).features == {Feature.TOOLS, Feature.HOSTED_TOOLS}


def test_keeping_an_answer_is_something_a_target_must_offer() -> None:
    assert asked(store=True).features == {Feature.STORE}
    for harmless in (False, None):
        assert asked(store=harmless).features == set()
    for path, prompt in (("completions", {"prompt": "a"}), ("embeddings", {"input": "a"})):
        with pytest.raises(RequestError, match="Leave it out") as caught:
            asked(f"/v1/{path}", store=True, **prompt)
        assert caught.value.param == "store"
        asked(f"/v1/{path}", store=False, **prompt)
    with pytest.raises(RequestError, match="`store`"):
        asked(store="yes")
