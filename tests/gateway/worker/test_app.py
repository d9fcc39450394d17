"""The small endpoints: models by key, health, readiness, metrics, OpenAPI; errors in one shape."""

import httpx
import pytest

USABLE = ("chat", "gpt-4o", "alpha/*")


def test_models_are_those_the_key_may_use(stack) -> None:
    cards = stack.get("/v1/models").json()
    assert cards["object"] == "list"
    assert [card["id"] for card in cards["data"]] == list(stack.settings.models)
    assert set(cards["data"][0]) == {"id", "object", "created", "owned_by", "breakeven"}
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


def test_anthropics_clients_page_through_the_models(stack) -> None:
    headers = {"x-api-key": stack.token, "anthropic-version": "2023-06-01"}
    url, names = stack.url + "/v1/models", list(stack.settings.models)
    first = httpx.get(url + "?limit=2", headers=headers, trust_env=False).json()
    assert (first["first_id"], first["last_id"], first["has_more"]) == (*names[:2], True)
    rest = httpx.get(f"{url}?after_id={names[1]}", headers=headers, trust_env=False).json()
    assert ([card["id"] for card in rest["data"]], rest["has_more"]) == (names[2:], False)
    wrong = httpx.get(url + "?limit=0", headers=headers, trust_env=False)
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")


def test_models_need_a_key(stack) -> None:
    answer = httpx.get(stack.url + "/v1/models", trust_env=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"].startswith("req_")


def test_the_bare_address_says_what_this_is_and_where_its_api_lies(stack) -> None:
    """Without a key nobody learns of versions, models or targets."""
    answer = httpx.get(stack.url + "/", trust_env=False)
    assert answer.status_code == 200
    told = answer.json()
    assert set(told) == {"message", "api", "docs", "openapi"}
    assert "Breakeven" in told["message"]
    for path in (told["docs"], told["openapi"]):
        assert httpx.get(stack.url + path, trust_env=False).status_code == 200
    assert httpx.get(stack.url + told["api"] + "/models", trust_env=False).status_code == 401
    assert httpx.head(stack.url, trust_env=False).headers["content-length"] == str(
        len(answer.content)
    )
    assert httpx.post(stack.url, trust_env=False).headers["allow"] == "GET, HEAD"


def test_health_readiness_and_metrics_need_none(stack) -> None:
    for path, body in (
        ("/healthz", {"status": "ok"}),
        ("/readyz", {"status": "ready", "missing": []}),
        ("/health", {"status": "ready", "missing": []}),
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
        answers = [stack.get(path) for path in ("/readyz", "/health")]
    finally:
        stack.app.hot.draining = False
    for answer in answers:
        assert (answer.status_code, answer.json()["missing"]) == (503, ["draining"])


def test_the_openapi_document_has_the_paths_that_are_served(stack) -> None:
    document = stack.get("/openapi.json").json()
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"):
        operation = document["paths"][path]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert "model" in schema["required"]
        assert operation["security"] == [{"key": []}, {"x-api-key": []}, {"api-key": []}]
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
    assert wrong.headers["allow"] == "GET, HEAD"
    assert stack.get("/favicon.ico").json()["error"]["code"] == "unknown_url"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/models", "GET, HEAD"),
        ("/v1/chat/completions", "GET, HEAD, POST"),
        ("/v1/files", "GET, HEAD, POST"),
        ("/v1/files/file-1", "DELETE, GET, HEAD"),
        ("/v1/batches", "GET, HEAD, POST"),
        ("/v1/batches/batch_1/cancel", "POST"),
    ],
)
def test_what_a_path_allows_is_said(stack, path: str, allowed: str) -> None:
    for method in ("PUT", "OPTIONS"):
        answer = stack.client.request(method, stack.url + path, headers=stack.headers())
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path",
    [
        *("/health", "/healthz", "/readyz", "/metrics", "/docs"),
        *("/v1/models", "/v1/models/chat", "/no"),
    ],
)
def test_head_is_get_without_its_body(stack, path: str) -> None:
    asked = stack.client.head(stack.url + path, headers=stack.headers())
    got = stack.get(path)
    assert (asked.status_code, asked.content) == (got.status_code, b"")
    assert asked.headers["content-type"] == got.headers["content-type"]


def test_slashes_too_many_are_left_out_where_a_key_is_asked_for(stack) -> None:
    body = {"model": "own", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    for path in ("/v1/chat/completions/", "//v1/chat/completions", "/v1//chat//completions"):
        assert stack.post(path, body).status_code == 200
    for path in ("/chat/completions/", "//chat//completions", "/messages/"):
        assert stack.post(path, body).status_code == 200
    for path in ("/v1/models/", "//v1/models", "/v1//models", "/v1/models/own/"):
        assert stack.get(path).status_code == 200
    for path in ("/models/", "//models", "/models//own/", "/openai/models/"):
        assert stack.get(path).status_code == 200
    assert stack.post("//v2/rerank/", {}).status_code == 400
    for path in ("//metrics", "/metrics/", "/healthz/", "/v1/", "/v1"):
        assert stack.get(path).json()["error"]["code"] == "unknown_url"


CHAT = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/chat/completions", "own"),
        ("/openai/v1/chat/completions", "own"),
        ("/openai/v1/chat/completions?api-version=preview", "own"),
        ("/openai/deployments/own/chat/completions?api-version=2024-10-21", None),
        ("/openai/deployments/own/chat/completions?api-version=2024-10-21", "own"),
        ("/openai/deployments/own/chat/completions", "nowhere"),
        ("/openai/deployments/alpha/other/chat/completions/", None),
        ("/engines/own/chat/completions", None),
    ],
)
def test_addresses_of_azure_and_without_a_prefix_are_served(stack, path: str, named) -> None:
    body = CHAT if named is None else {**CHAT, "model": named}
    answer = stack.client.post(stack.url + path, json=body, headers={"api-key": stack.token})
    assert answer.status_code == 200, answer.text
    (row,) = stack.settled(answer)
    assert row["model"] == ("alpha/other" if "alpha" in path else "own")


def test_what_is_wrong_with_an_address_of_azure_is_said(stack) -> None:
    path = "/openai/deployments/nowhere/chat/completions"
    told = stack.post(path, CHAT).json()["error"]
    assert (told["code"], told["param"]) == ("model_not_found", "model")
    broken = stack.client.post(stack.url + path, content=b"{", headers=stack.headers())
    assert broken.status_code == 400
    assert stack.client.post(stack.url + path, json=CHAT).status_code == 401
    refused = stack.client.put(stack.url + path, headers=stack.headers())
    assert refused.json()["error"]["code"] == "method_not_allowed"
    assert stack.get("/models").json() == stack.get("/v1/models").json()
    assert stack.get("/openai/v1/models/own").json()["id"] == "own"


def test_a_responses_request_comes_from_an_address_of_azure(stack) -> None:
    answer = stack.post("/openai/v1/responses?api-version=v1", {"model": "own", "input": "x"})
    assert answer.json()["object"] == "response"


def test_anthropics_clients_are_told_in_their_shape(stack) -> None:
    version = {"anthropic-version": "2023-06-01"}
    for path, headers in (("/v1/messages/others", {}), ("/v1/nothing", version)):
        answer = stack.client.get(stack.url + path, headers={**stack.headers(), **headers})
        told = answer.json()
        assert (answer.status_code, told["type"]) == (404, "error")
        assert told["error"]["type"] == "not_found_error"
        named = told["request_id"]
        assert named == answer.headers["request-id"] == answer.headers["x-request-id"]
    assert stack.get("/v1/nothing").json()["error"]["code"] == "unknown_url"


def test_anthropics_clients_list_models(stack) -> None:
    headers = {"x-api-key": stack.token, "anthropic-version": "2023-06-01"}
    listed = stack.client.get(stack.url + "/v1/models", headers=headers).json()
    names = list(stack.settings.models)
    assert [entry["id"] for entry in listed["data"]] == names
    assert {entry["type"] for entry in listed["data"]} == {"model"}
    assert (listed["has_more"], listed["last_id"]) == (False, names[-1])
    json = stack.client.get(stack.url + "/v1/models/own", headers=headers).json()
    assert (json["type"], json["display_name"]) == ("model", "own")


def test_who_is_not_known_is_told_how_to_say_it(stack) -> None:
    for path in ("/v1/models", "/v1/models/own"):
        answer = httpx.get(stack.url + path, trust_env=False)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    asked = httpx.post(stack.url + "/v1/chat/completions", json={}, trust_env=False)
    assert (asked.status_code, asked.headers["www-authenticate"]) == (401, "Bearer")


class Broken:
    """Among what `/metrics` shows: a defect that nobody foresaw."""

    def collect(self) -> list[object]:
        raise ZeroDivisionError("secret words")


def test_a_defect_is_told_as_every_error_and_logged_with_its_request(stack, caplog) -> None:
    broken = Broken()
    stack.registry.register(broken)
    try:
        with httpx.Client(base_url=stack.url, trust_env=False) as client:
            answer = client.get("/metrics")
            connections = stack.connections()
            assert client.get("/healthz").status_code == 200
            assert stack.connections() == connections  # the same one
            anthropics = client.get("/metrics", headers={"anthropic-version": "2023-06-01"})
            head = client.head("/metrics")
    finally:
        stack.registry.unregister(broken)
    assert answer.status_code == head.status_code == 500
    assert answer.json()["error"] == {
        "message": "The gateway failed. Report `x-request-id`: the cause is in its log.",
        "type": "server_error", "param": None,
        "code": "internal_error",
    }  # fmt: skip
    assert anthropics.json()["error"]["type"] == "api_error"
    logged = [record for record in caplog.records if record.name == "breakeven.app"]
    assert answer.headers["x-request-id"] in logged[0].getMessage()
    assert "secret words" in caplog.text
    assert stack.get("/metrics").status_code == 200
