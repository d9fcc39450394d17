"""The hot paths are described as they are read: required members named, the rest let through."""

import re

from gateway.http.member_rules import DENIED
from gateway.request.inference_api import HOT
from gateway.worker.openapi import POLICY, describe_api, page


def test_every_hot_path_is_described() -> None:
    paths = describe_api({})["paths"]
    assert set(paths) == HOT
    for path, required in (
        ("/v1/chat/completions", "messages"),
        ("/v1/completions", "prompt"),
        ("/v1/embeddings", "input"),
        ("/v1/messages/count_tokens", "messages"),
        ("/v1/responses", "input"),
    ):
        operation = paths[path]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert schema["required"] == ["model", required]
        assert schema["additionalProperties"] is True
        assert not DENIED & set(schema["properties"])
        assert set(operation["responses"]) == {"200", "4XX", "5XX"}
        assert all(
            "x-request-id" in response["headers"] for response in operation["responses"].values()
        )


def test_only_the_inference_paths_need_a_key() -> None:
    document = describe_api({"paths": {"/healthz": {"get": {}}, "/v1/models": {"get": {}}}})
    assert "security" not in document["paths"]["/healthz"]["get"]
    security = [{"key": []}, {"x-api-key": []}, {"api-key": []}]
    assert document["paths"]["/v1/models"]["get"]["security"] == security
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_errors_have_openais_four_members() -> None:
    error = describe_api({})["paths"]["/v1/embeddings"]["post"]["responses"]["4XX"]
    schema = error["content"]["application/json"]["schema"]["properties"]["error"]
    assert schema["required"] == ["message", "type", "param", "code"]


def test_anthropics_path_has_its_own_errors_and_limit() -> None:
    operation = describe_api({})["paths"]["/v1/messages"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["model", "messages", "max_tokens"]
    read = {name for name, property_ in schema["properties"].items() if "enum" not in property_}
    assert read == {
        "model", "stream", "max_tokens", "messages", "system", "tools", "stop_sequences",
    }  # fmt: skip
    error = operation["responses"]["4XX"]["content"]["application/json"]["schema"]
    assert error["required"] == ["type", "error", "request_id"]


def test_the_page_shows_every_path_and_loads_nothing() -> None:
    document = describe_api(
        {"info": {"title": "A <b>"}, "paths": {"/x<y": {"get": {"summary": "&"}}}}
    )
    shown = page(document)
    assert all(f"<code>POST {path}</code></td>" in shown for path in HOT)
    assert "<code>GET /x&lt;y</code></td><td>&amp;</td><td></td>" in shown
    assert "A &lt;b&gt;" in shown
    assert re.findall(r'(?:src|href)="([^"]+)', shown) == ["openapi.json"]
    assert not re.search(r"<script|<link|<img|https?:|//", shown)
    assert POLICY.startswith("default-src 'none';")
