"""What requests ask for, and which ones are refused with which word."""

import json

import pytest

from backends.simulator.dialect import RefusedError, SimulatedRules, parse, parse_embedding

RULES = SimulatedRules(("sim",), 100, 16)


def ask(chat=True, rules=RULES, **fields):
    base = {"messages": [{"role": "user", "content": "hi"}]} if chat else {"prompt": "hi there"}
    return parse(json.dumps({"model": "sim", **base, **fields}).encode(), chat=chat, rules=rules)


def test_a_chat_is_counted_with_its_template():
    found = ask(max_tokens=5)
    assert found.prompt_tokens == -(-len("<|user|>hi<|assistant|>") // 4)
    assert len(found.choices) == 1
    assert not found.stream


def test_choices_share_the_prompt_and_differ_in_their_answer():
    found = ask(n=3, max_tokens=50)
    assert len({choice.script.text for choice in found.choices}) == 3
    assert found.prompt_tokens == found.choices[0].prompt_tokens


def test_prompts_come_as_text_ids_or_lists():
    assert ask(chat=False, prompt=[1, 2, 3]).prompt_tokens == 3
    several = ask(chat=False, prompt=["a", "bbbbb"], n=2)
    assert several.prompt_tokens == 3
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]
    assert ask(chat=False).choices[0].script.tokens == 16


def test_continuous_usage_needs_usage():
    assert not ask(stream_options={"continuous_usage_stats": True}).continuous_usage
    both = {"continuous_usage_stats": True, "include_usage": True}
    assert ask(stream_options=both).continuous_usage


def test_a_salt_changes_the_block_hashes():
    long = [{"role": "user", "content": "x" * 200}]
    assert (
        ask(messages=long).choices[0].hashes != ask(messages=long, cache_salt="a").choices[0].hashes
    )


@pytest.mark.parametrize(
    ("fields", "kind", "param"),
    [
        ({"model": "nope"}, "model", "model"),
        ({"model": 3}, "validation", "body.model"),
        ({"messages": []}, "validation", "body.messages"),
        ({"messages": [{"content": "x"}]}, "validation", "body.messages"),
        ({"messages": [{"role": "user", "content": "x" * 400}]}, "too_long", "input_tokens"),
        ({"max_tokens": 5000}, "too_long", "max_tokens"),
        ({"max_tokens": 0.5}, "validation", "max_tokens"),
        ({"n": 0}, "validation", "n"),
        ({"stop": 1}, "validation", "stop"),
        ({"stop": ["a", 1]}, "validation", "stop"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "validation",
            "body.messages",
        ),
    ],
)
def test_refusals(fields, kind, param):
    with pytest.raises(RefusedError) as caught:
        ask(**fields)
    assert (caught.value.kind, caught.value.param) == (kind, param)


@pytest.mark.parametrize("prompt", [[[]], [[1], []], [True], [[-1]]])
def test_a_prompt_without_tokens_is_refused(prompt):
    with pytest.raises(RefusedError) as caught:
        ask(chat=False, prompt=prompt)
    assert (caught.value.kind, caught.value.param) == ("validation", "body.prompt")


@pytest.mark.parametrize("body", [b"{", b"[]", b"3"])
def test_a_body_that_is_no_object_is_refused(body):
    with pytest.raises(RefusedError):
        parse(body, chat=True, rules=RULES)


def test_pictures_and_documents_have_a_fixed_price_where_they_are_taken():
    parts = [{"type": "text", "text": "what"}, {"type": "image_url", "image_url": {"url": "u"}}]
    rules = SimulatedRules((), 10_000, 16, images=True)
    found = ask(rules=rules, messages=[{"role": "user", "content": parts}])
    assert found.prompt_tokens > 256
    file = [{"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}]
    assert ask(rules=rules, messages=[{"role": "user", "content": file}]).prompt_tokens > 1024
    with pytest.raises(RefusedError, match="file"):
        ask(messages=[{"role": "user", "content": file}])


def test_logprobs_of_both_endpoints():
    assert ask(logprobs=True, top_logprobs=2).logprobs == 2
    assert ask(top_logprobs=2).logprobs is None
    assert ask(chat=False, logprobs=1).logprobs == 1


def test_embeddings():
    body = json.dumps({"model": "sim", "input": ["a", "b"], "encoding_format": "base64"}).encode()
    assert parse_embedding(body, RULES) == ("sim", [b"a", b"b"], True)
    with pytest.raises(RefusedError):
        parse_embedding(b'{"model":"sim"}', RULES)
