"""Rerankings without a model: a document scores by the words shared with the query.

There are two answer formats: that of vLLM and Jina, which count tokens, and that of Cohere's second
version, which bills searches. A query is read with every document, so its tokens count once for
each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from backends.simulator import words
from backends.simulator.dialect import RefusedError, SimulatedRules, decode, model_of

SEARCH_DOCUMENTS = 100
PAIR_TOKENS = 4  # what a model sets around and between the two


@dataclass(frozen=True, slots=True)
class Ranking:
    model: str
    query: str
    documents: tuple[str, ...]
    top_n: int
    returned: bool

    @property
    def tokens(self) -> int:
        query = words.count(self.query.encode())
        return sum(
            query + words.count(document.encode()) + PAIR_TOKENS for document in self.documents
        )


def parse_ranking(body: bytes, rules: SimulatedRules) -> Ranking:
    fields = decode(body)
    query, documents, top_n = fields.get("query"), fields.get("documents"), fields.get("top_n")
    if not isinstance(query, str):
        raise RefusedError("validation", "Field required: query", "body.query")
    if not isinstance(documents, list) or not documents:
        raise RefusedError("validation", "Field required: documents", "body.documents")
    texts = tuple(_text(document) for document in documents)
    for text in texts:
        read = words.count(text.encode()) + words.count(query.encode()) + PAIR_TOKENS
        if read >= rules.context_tokens:
            message = f"This model's maximum context length is {rules.context_tokens} tokens."
            raise RefusedError("too_long", message, "documents")
    most = top_n if isinstance(top_n, int) and top_n > 0 else len(texts)
    returned = fields.get("return_documents") is True
    return Ranking(model_of(fields, rules), query, texts, min(most, len(texts)), returned)


def rank_documents(ranking: Ranking, *, id: str, searches: bool, documents: bool) -> bytes:  # noqa: A002  (as on the wire)
    """Return the answer. `searches`: billed as by Cohere; `documents`: with texts, as by vLLM."""
    scores = [score(ranking.query, document) for document in ranking.documents]
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    results: list[dict[str, Any]] = []
    for index in order[: ranking.top_n]:
        result: dict[str, Any] = {"index": index, "relevance_score": scores[index]}
        if documents or ranking.returned:
            result["document"] = {"text": ranking.documents[index]}
        results.append(result)
    if searches:
        units = -(-len(ranking.documents) // SEARCH_DOCUMENTS)
        meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": units}}
        return msgspec.json.encode({"id": id, "results": results, "meta": meta})
    usage = {"prompt_tokens": ranking.tokens, "total_tokens": ranking.tokens}
    return msgspec.json.encode(
        {"id": id, "model": ranking.model, "usage": usage, "results": results}
    )


# vLLM takes the first complete pair of members (vllm 0.32, pooling/score/protocol.py).
SIDES = (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Pairs of texts, as vLLM's `/score` takes them."""

    model: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def tokens(self) -> int:
        return sum(
            words.count(left.encode()) + words.count(right.encode()) + PAIR_TOKENS
            for left, right in self.pairs
        )


def parse_pairs(body: bytes, rules: SimulatedRules) -> ScoredPairs:
    fields = decode(body)
    for first, second in SIDES:
        if fields.get(first) is not None and fields.get(second) is not None:
            left, right = _side(fields[first]), _side(fields[second])
            if len(left) not in (1, len(right)):
                raise RefusedError("validation", "Input lengths must be either 1:1, 1:N or N:N")
            lefts = left * len(right) if len(left) == 1 else left
            return ScoredPairs(model_of(fields, rules), tuple(zip(lefts, right, strict=True)))
    raise RefusedError("validation", "Field required: text_1", "body.text_1")


def score_pairs(scored: ScoredPairs, *, id: str) -> bytes:  # noqa: A002  (as on the wire)
    data = [
        {"index": index, "object": "score", "score": score(left, right)}
        for index, (left, right) in enumerate(scored.pairs)
    ]
    usage = {"prompt_tokens": scored.tokens, "total_tokens": scored.tokens}
    answer = {"id": id, "object": "list", "model": scored.model, "data": data, "usage": usage}
    return msgspec.json.encode(answer)


def _side(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [_text(text) for text in listed]


def score(query: str, document: str) -> float:
    """Return the share of the query's words that the document has, between 0 and 1."""
    asked = _words_of(query)
    return len(asked & _words_of(document)) / len(asked) if asked else 0.0


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


def _text(document: object) -> str:
    text: Sequence[Any] | object = document
    if isinstance(document, dict):
        text = document.get("text")
    if not isinstance(text, str):
        raise RefusedError("validation", "a document is a text or has one", "body.documents")
    return text
