"""Documents are ranked by a real vLLM through the gateway: the engine's own answer, its own tokens.

`tiny_embedder` ranks by the similarity of its embeddings, as vLLM does for any model of the kind.
"""

import httpx
import pytest

DOCUMENTS = ["a machine in a rack", "the price of an hour", "seven tokens more or less"]


@pytest.fixture(scope="module")
def gateway(reading_gateway):
    found = reading_gateway
    found.until(lambda: rank(found, query="are you", documents=["there"]).status_code == 200, 90)
    return found


def rank(gateway, path="/v1/rerank", **body) -> httpx.Response:
    return httpx.post(
        gateway.base_url.removesuffix("/v1") + path,
        json={"model": "rank", **body},
        headers=gateway.headers,
        trust_env=False,
        timeout=60,
    )


def direct(engine, **body) -> dict:
    url = f"{engine.base_url}/rerank"
    body = {"model": engine.model, **body}
    return httpx.post(url, json=body, trust_env=False, timeout=60).json()


def scores(document: dict) -> dict[int, float]:
    return {result["index"]: result["relevance_score"] for result in document["results"]}


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_the_ranking_is_the_engines_own(gateway, tiny_embedder, path) -> None:
    asked = {"query": "what does an hour cost?", "documents": DOCUMENTS}
    answer = rank(gateway, path, **asked)
    expected = direct(tiny_embedder, **asked)
    found = answer.json()
    assert answer.headers["x-breakeven-backend"] == "pool:rank/0"
    assert found["usage"] == expected["usage"]
    assert scores(found) == pytest.approx(scores(expected), abs=0.02)
    assert len(set(scores(found).values())) == 3  # the control: documents differ
    assert [result["document"]["text"] for result in found["results"]] == [
        DOCUMENTS[result["index"]] for result in found["results"]
    ]


def test_only_the_first_are_sent(gateway) -> None:
    asked = {"query": "an hour", "documents": DOCUMENTS}
    best = rank(gateway, top_n=1, **asked).json()["results"]
    assert [best[0]["index"]] == [rank(gateway, **asked).json()["results"][0]["index"]]
    assert len(best) == 1


def test_tokens_are_counted_priced_and_compared(gateway, tiny_embedder, counters) -> None:
    before = counters(tiny_embedder.base_url)["prompt_tokens"]
    answers = [rank(gateway, query="an hour", documents=DOCUMENTS[:size]) for size in (1, 2, 3)]
    used = counters(tiny_embedder.base_url)["prompt_tokens"] - before
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    rows = []
    for answer in answers:
        name = answer.headers["x-request-id"]
        rows += gateway.until(lambda name=name: gateway.rows(query, id=name), 20)
    assert [(row["kind"], row["basis"], row["output_tokens"]) for row in rows] == [
        ("rerank", "reported", 0)
    ] * 3
    tokens = [row["input_tokens"] for row in rows]
    assert tokens == [answer.json()["usage"]["total_tokens"] for answer in answers]
    assert sum(tokens) == used > 0
    assert all(row["engine_us"] > 0 < row["cost_pusd"] <= row["bound_pusd"] for row in rows)
    assert [row["compared_pusd"] for row in rows] == [50_000 * count for count in tokens]


def test_documents_need_to_fit_one_by_one_only(gateway, tiny_embedder) -> None:
    """All together twice the context; the gateway holds none of them back."""
    documents = [f"hour {place} " * 60 for place in range(36)]
    answer = rank(gateway, query="an hour", documents=documents)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["total_tokens"] > 2 * tiny_embedder.context_tokens


def test_chat_is_not_sent_to_an_engine_that_ranks(gateway) -> None:
    answer = httpx.post(
        f"{gateway.base_url}/chat/completions",
        json={"model": "rank", "messages": [{"role": "user", "content": "hello"}]},
        headers=gateway.headers,
        trust_env=False,
    )
    assert answer.status_code == 400
    assert "serves this path" in answer.json()["error"]["message"]
