"""Embeddings come from a second vLLM through the same gateway, unchanged, counted and priced."""

import base64
import struct
from decimal import Decimal

import httpx
import pytest

TEXTS = ["a machine in a rack", "the price of an hour", "seven tokens more or less"]


@pytest.fixture(scope="module")
def gateway(reading_gateway):
    found = reading_gateway
    found.until(lambda: embed(found, input="are you there").status_code == 200, 90)
    return found


def embed(gateway, **body) -> httpx.Response:
    return httpx.post(
        f"{gateway.base_url}/embeddings",
        json={"model": "embed", **body},
        headers=gateway.headers,
        trust_env=False,
        timeout=60,
    )


def direct(engine, **body) -> dict:
    url = f"{engine.base_url}/embeddings"
    body = {"model": engine.model, **body}
    return httpx.post(url, json=body, trust_env=False, timeout=60).json()


def test_vectors_are_the_engines_own(gateway, tiny_embedder) -> None:
    answer = embed(gateway, input=TEXTS)
    expected = direct(tiny_embedder, input=TEXTS)
    found = answer.json()
    assert answer.headers["x-breakeven-backend"] == "pool:embed/0"
    assert [entry["index"] for entry in found["data"]] == [0, 1, 2]
    assert found["usage"] == expected["usage"]
    for mine, theirs in zip(found["data"], expected["data"], strict=True):
        assert mine["embedding"] == pytest.approx(theirs["embedding"], abs=0.02)
    vectors = [entry["embedding"] for entry in found["data"]]
    assert vectors[0] != pytest.approx(vectors[1], abs=0.02)  # the control: texts differ


def test_base64_is_relayed(gateway) -> None:
    plain = embed(gateway, input=TEXTS[0]).json()["data"][0]["embedding"]
    packed = embed(gateway, input=TEXTS[0], encoding_format="base64").json()["data"][0]["embedding"]
    raw = base64.b64decode(packed)
    assert struct.unpack(f"<{len(raw) // 4}f", raw) == pytest.approx(plain, abs=0.02)


def test_tokens_are_counted_and_priced(gateway, tiny_embedder, counters) -> None:
    before = counters(tiny_embedder.base_url)["prompt_tokens"]
    answers = [embed(gateway, input=TEXTS[:size]) for size in (1, 2, 3)]
    used = counters(tiny_embedder.base_url)["prompt_tokens"] - before
    ids = [answer.headers["x-request-id"] for answer in answers]
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    rows = [gateway.until(lambda item=id_: gateway.rows(query, id=item), 20)[0] for id_ in ids]
    assert [row["kind"] for row in rows] == ["embedding"] * 3
    assert [row["output_tokens"] for row in rows] == [0, 0, 0]
    tokens = [row["input_tokens"] + row["cached_tokens"] for row in rows]
    assert tokens == [answer.json()["usage"]["prompt_tokens"] for answer in answers]
    assert sum(tokens) == used > 0
    for answer, row in zip(answers, rows, strict=True):
        cost = Decimal(answer.headers["x-breakeven-cost-usd"])
        assert cost == Decimal(row["cost_pusd"]).scaleb(-12) > 0


def test_chat_is_not_sent_to_an_embedding_engine(gateway) -> None:
    answer = httpx.post(
        f"{gateway.base_url}/chat/completions",
        json={"model": "embed", "messages": [{"role": "user", "content": "hello"}]},
        headers=gateway.headers,
        trust_env=False,
    )
    assert answer.status_code == 400
    assert "model" in answer.json()["error"]["message"]
