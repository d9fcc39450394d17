"""The small endpoints: models by key, health, readiness, metrics, OpenAPI; errors in one shape."""

import httpx
import pytest

USABLE = ("chat", "gpt-4o", "alpha/*")


def test_models_are_those_the_key_may_use(stack) -> None:
    cards = stack.get("/v1/models").json()
    assert cards["object"] == "list"
    assert [card["id"] for card in cards["data"]] == list(stack.settings.models)
    assert set(cards["data"][0]) == {"id", "object", "created", "owned_by"}
    narrow = stack.key("narrow", models=("own", "gpt-4o")).token
    names = [card["id"] for card in stack.get("/v1/models", narrow).json()["data"]]
    assert names == ["gpt-4o", "own"]
    assert stack.get("/v1/models/own", narrow).json()["id"] == "own"
    hidden = stack.get("/v1/models/api", narrow)
    assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "model_not_found")
    slashed = stack.get("/v1/models/alpha/*")
    assert slashed.json()["id"] == "alpha/*"
    refused = stack.chat("api", narrow)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "permission_error")
    assert stack.chat("gpt-4o", narrow, max_tokens=2).status_code == 200


def test_a_name_is_shown_where_a_request_may_use_it(stack) -> None:
    """Aliases of what a key may use, and names that a pass-through pattern covers."""
    limited = stack.key("limited", models=("chat", "alpha/*")).token
    names = [card["id"] for card in stack.get("/v1/models", limited).json()["data"]]
    assert names == [name for name in stack.settings.models if name in USABLE]
    assert "gpt-4o" in names
    for name in ("gpt-4o", "alpha/brand-new"):
        assert stack.chat(name, limited, max_tokens=2).status_code == 200
        assert stack.get(f"/v1/models/{name}", limited).json()["id"] == name
    for name in ("own", "nowhere/brand-new", "alpha/"):
        assert stack.get(f"/v1/models/{name}", limited).status_code == 404
    other = stack.key("other", models=("own",)).token
    assert stack.get("/v1/models/alpha/brand-new", other).status_code == 404


def test_a_confined_key_is_shown_what_it_can_use(stack) -> None:
    confined = stack.key("confined", residency="internal_only").token
    names = [card["id"] for card in stack.get("/v1/models", confined).json()["data"]]
    assert "own" in names
    assert not {"api", "alpha/*"} & set(names)
    assert stack.get("/v1/models/api", confined).status_code == 404
    assert stack.chat("own", confined, max_tokens=2).status_code == 200
    assert stack.chat("api", confined, max_tokens=2).status_code != 200
    open_to_all = [card["id"] for card in stack.get("/v1/models").json()["data"]]
    assert {"api", "alpha/*"} <= set(open_to_all)


def test_models_need_a_key(stack) -> None:
    answer = httpx.get(stack.url + "/v1/models", trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"].startswith("req_")


def test_health_readiness_and_metrics_need_none(stack) -> None:
    for path, body in (
        ("/healthz", {"status": "ok"}),
        ("/readyz", {"status": "ready", "missing": []}),
    ):
        answer = httpx.get(stack.url + path, trust_env=False)
        assert (answer.status_code, answer.json()) == (200, body)
    stack.chat("own", max_tokens=3)
    page = httpx.get(stack.url + "/metrics", trust_env=False)
    assert page.headers["content-type"].startswith("text/plain")
    assert 'breakeven_requests_total{model="own",reason="only",status="finished"' in page.text


def test_a_draining_worker_is_not_ready(stack) -> None:
    stack.app.hot.draining = True
    try:
        answer = stack.get("/readyz")
    finally:
        stack.app.hot.draining = False
    assert (answer.status_code, answer.json()["missing"]) == (503, ["draining"])


def test_the_openapi_document_has_the_paths_that_are_served(stack) -> None:
    document = stack.get("/openapi.json").json()
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"):
        operation = document["paths"][path]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert "model" in schema["required"]
        assert operation["security"] == [{"key": []}]
    assert {"/v1/models", "/healthz", "/readyz", "/metrics"} <= set(document["paths"])


def test_the_docs_need_no_network(stack) -> None:
    shown = stack.get("/docs")
    assert (shown.status_code, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert shown.headers["content-security-policy"].startswith("default-src 'none'")
    assert "/v1/chat/completions" in shown.text
    assert "//" not in shown.text
    assert stack.get("/redoc").json()["error"]["code"] == "unknown_url"


def test_wrong_methods_and_unknown_paths_are_told_alike(stack) -> None:
    wrong = stack.post("/healthz", {})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "GET"
    assert stack.get("/favicon.ico").json()["error"]["code"] == "unknown_url"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_balancers_may_probe_with_head(stack, path: str) -> None:
    asked = stack.client.head(stack.url + path)
    got = stack.get(path)
    assert (asked.status_code, asked.content) == (got.status_code, b"")
    assert asked.headers["content-type"] == got.headers["content-type"]
