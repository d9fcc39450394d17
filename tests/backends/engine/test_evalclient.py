"""One side asked: in vLLM's dialect, in OpenAI's, and where neither tells log-probabilities."""

import json
import math

import httpx
import pytest

from backends.engine.evalclient import EvalModel, NoAnswer, only_model, parse_logprobs

MESSAGES = [{"role": "user", "content": "Hello"}]


def side(answer, tokens: int = 4) -> EvalModel:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return EvalModel(client, "http://engine/v1", "m", tokens)


def chat(*, logprobs: bool, ids: bool) -> dict:
    top = [{"token": "so", "logprob": -0.5}, {"token": "no", "logprob": -1.5}]
    choice: dict = {"message": {"content": "so it is"}}
    if logprobs:
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    if ids:
        choice["token_ids"] = [7]
    return {"choices": [choice], **({"prompt_token_ids": [1, 2]} if ids else {})}


async def test_vllm_tells_ids_and_logprobs():
    asked: list[dict] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json=chat(logprobs=True, ids=True))

    said = await side(answer).answer(MESSAGES)
    assert said.text == "so it is"
    assert said.ids == ((1, 2), (7,))
    assert said.told[0].top == {"so": -0.5, "no": -1.5}
    assert said.told[0].first == "so"
    assert (asked[0]["temperature"], asked[0]["max_tokens"]) == (0, 4)


async def test_what_is_refused_is_not_asked_again():
    asked: list[dict] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        asked.append(body)
        if "logprobs" in body:
            return httpx.Response(400, json={"error": {"message": "unknown parameter"}})
        return httpx.Response(200, json=chat(logprobs=False, ids=False))

    this_side = side(answer)
    said = await this_side.answer(MESSAGES)
    assert [word.token for word in said.told] == ["so", "it", "is"]
    assert math.isnan(said.told[0].logprob)
    assert said.ids is None
    assert len(asked) == 3
    await this_side.answer(MESSAGES)
    assert len(asked) == 4


async def test_a_side_that_fails_says_with_what():
    with pytest.raises(NoAnswer, match="returned 401"):
        await side(lambda _: httpx.Response(401, json={"error": "no key"})).answer(MESSAGES)
    asked: list[int] = []

    def broken(_: httpx.Request) -> httpx.Response:
        asked.append(1)
        return httpx.Response(503, json={})

    with pytest.raises(NoAnswer, match="503"):
        await side(broken).answer(MESSAGES)
    assert len(asked) == 2, "once more, no oftener"


async def test_a_given_text_is_judged_token_by_token():
    listed = [
        None,
        {"2": {"logprob": -0.1, "rank": 1}},
        {"9": {"logprob": -0.2, "rank": 1}, "7": {"logprob": -9.0, "rank": 400}},
    ]
    asked: list[dict] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json={"choices": [{"prompt_logprobs": listed}]})

    told = await side(answer).logprobs_of(((1, 2), (7,)))
    assert told is not None
    assert asked[0]["prompt"] == [1, 2, 7]
    assert (told[0].token, told[0].logprob, told[0].first) == ("7", -9.0, "9")
    assert told[0].top == {"9": -0.2}, "the text's own token is listed by its rank alone"
    assert await side(lambda _: httpx.Response(404, json={})).logprobs_of(((1,), (2,))) is None


def test_lists_that_lack_the_text_are_no_answer():
    with pytest.raises(KeyError):
        parse_logprobs([{"2": {"logprob": -0.1, "rank": 1}}], [3])


async def test_the_only_model_needs_no_name():
    def answer(*names: str):
        document = {"data": [{"id": name} for name in names]}
        return httpx.MockTransport(lambda _: httpx.Response(200, json=document))

    async with httpx.AsyncClient(transport=answer("one")) as client:
        assert await only_model(client, "http://engine/v1", {}) == "one"
    async with httpx.AsyncClient(transport=answer("one", "two")) as client:
        with pytest.raises(NoAnswer, match="serves one, two"):
            await only_model(client, "http://engine/v1", {})


@pytest.mark.parametrize("said", [{}, {"choices": []}, {"choices": [{"message": 3}]}, [1], "no"])
async def test_an_answer_of_another_shape_is_the_sides_fault(said):
    with pytest.raises(NoAnswer, match="http://engine/v1"):
        await side(lambda _: httpx.Response(200, json=said)).answer(MESSAGES)
