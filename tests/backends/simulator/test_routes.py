"""The simulators' table of request kinds: every kind has a route, and readers answer by place."""

import json

import pytest

from backends.simulator.dialect import SimulatedRules
from backends.simulator.routes import (
    API_ROUTES,
    BATCH_ROUTES,
    ENGINE_ROUTES,
    SIMULATED_KINDS,
    CallSite,
    read_embeddings,
    read_ranking,
)
from gateway.kinds import BATCH_PATHS, KIND_PATHS
from router.request_kinds import RequestKind

RULES = SimulatedRules((), 1000, 16)
RANKING = json.dumps({"model": "m", "query": "a", "documents": ["a", "b"]}).encode()


def test_every_kind_of_request_is_simulated() -> None:
    assert list(SIMULATED_KINDS) == [kind.value for kind in RequestKind]


def test_the_gateways_paths_are_served_and_its_batches_taken() -> None:
    assert ENGINE_ROUTES.keys() | API_ROUTES.keys() == KIND_PATHS.keys()
    assert tuple(BATCH_ROUTES) == BATCH_PATHS


@pytest.mark.parametrize("base64", [False, True])
def test_embeddings_are_counted_before_they_are_made(base64: bool) -> None:
    form = {"encoding_format": "base64"} if base64 else {}
    body = json.dumps({"model": "m", "input": ["a", "b"], **form}).encode()
    request = read_embeddings(body, RULES, CallSite("/v1/embeddings", api=True, number=str))
    answer = json.loads(request.answer())
    assert answer["usage"]["prompt_tokens"] == request.tokens > 0
    kinds = {type(row["embedding"]) for row in answer["data"]}
    assert kinds == {str if base64 else list}


@pytest.mark.parametrize(
    ("site", "prefix", "searches"),
    [
        (("/v2/rerank", True), "7", True),
        (("/v1/rerank", True), "7", False),
        (("/v2/rerank", False), "rerank-7", False),
    ],
)
def test_a_ranking_counts_searches_at_a_provider_alone(site, prefix, searches) -> None:
    path, api = site
    request = read_ranking(RANKING, RULES, CallSite(path, api=api, number=lambda: "7"))
    answer = json.loads(request.answer())
    assert answer["id"] == prefix
    assert (b"search_units" in request.answer()) is searches
