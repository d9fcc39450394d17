"""Paths of known APIs that are not served say why; served ones, and unknown ones, do not."""

import httpx
import pytest

from gateway.request.inference_api import HOT
from gateway.worker.unserved_paths import (
    UNSERVED,
    reason_of_method,
    reason_unserved,
    unknown_path_text,
)

NOT_SERVED = [
    "/v1/assistants", "/v1/assistants/asst_1", "/v1/threads/t/runs", "/v1/vector_stores",
    "/v1/vector_stores/vs_1/files", "/v1/fine_tuning/jobs", "/v1/evals", "/v1/containers/c/files",
    "/v1/videos", "/v1/realtime", "/v1/realtime/client_secrets", "/v1/uploads/u/parts",
    "/v1/complete", "/v1beta/models/gemini-2.5-pro:generateContent",
    "/v1beta/models/gemini-2.5-pro:streamGenerateContent", "/v1beta/models", "/v1/models/x:predict",
    "/v1/projects/p/locations/l/publishers/google/models/gemini:generateContent",
    "/model/anthropic.claude/converse", "/model/m/invoke-with-response-stream", "/api/chat",
    "/api/tags", "/v2/chat", "/v2/embed", "/v1/chat", "/mcp", "/v1/mcp/x", "/classify",
    "/openai/deployments/m/extensions/chat/completions", "/openai/assistants", "/key/generate",
    "/v1/sessions/s/events", "/v1/memory_stores", "/v1/organizations/users", "/v1/vaults/v",
    "/v1/organization/audit_logs", "/v1/organization/projects/p/users", "/v1/projects/p/roles",
    "/v1/organization/usage/vector_stores", "/v1/webhook_endpoints", "/v1/live/sessions",
    "/v1/ocr", "/ocr", "/v1/search", "/search/perplexity", "/v1/rag/query", "/interactions/i_1",
    "/assistants/asst_1", "/vector_store/list", "/engines/m/evals", "/openai/v1/realtime/calls",
    "/openai/deployments/org/m/assistants", "/openai/deployments", "/openai/deployments/m/nothing",
    "/openai/ingestion/jobs", "/anthropic/v1/messages", "/health/liveliness", "/model/new",
    "/global/spend/report", "/guardrails/apply_guardrail", "/get_model_info", "/version",
    "/v1internal:streamGenerateContent", "/v1internal:loadCodeAssist", "/v1alpha1/models",
]  # fmt: skip


@pytest.mark.parametrize("path", NOT_SERVED)
def test_a_path_of_a_known_api_has_a_reason(path: str) -> None:
    reason = reason_unserved(path)
    assert reason is not None
    assert reason.endswith(".")
    assert reason.count(". ") >= 1  # the reason, and the way round


@pytest.mark.parametrize(
    "path",
    [
        *sorted(HOT),
        "/v1/models",
        "/v1/models/a/b",
        "/v1/files/f/content",
        "/v1/batches",
        "/v1/organization/usage/completions",
        "/v1/organization/keys",
        "/v1/organization/projects",
        "/health",
    ],
)
def test_no_served_path_has_one(path: str) -> None:
    assert reason_unserved(path) is None


@pytest.mark.parametrize("root", ["/v1", "", "/openai", "/openai/v1", "/openai/deployments/m"])
def test_a_reason_is_the_same_at_each_address_of_an_api(root: str) -> None:
    for name in ("assistants", "ocr", "search", "realtime", "images/variations"):
        assert reason_unserved(f"{root}/{name}") == reason_unserved(f"/v1/{name}")


def test_what_is_served_below_an_organization_is_not_hidden(stack) -> None:
    for path in ("projects", "usage/completions", "usage/embeddings", "costs", "key"):
        answer = stack.get(f"/v1/organization/{path}?start_time=0")
        assert "endpoint_not_served" not in answer.text, path


@pytest.mark.parametrize("path", ["/", "/nothing", "/v1/nothing", "/v1/chat/nothing", "/healthz"])
def test_nor_does_an_unknown_path(path: str) -> None:
    assert reason_unserved(path) is None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/chat/completion", "did you mean `/v1/chat/completions`?"),
        ("/v1/embedding", "did you mean `/v1/embeddings`?"),
        ("/v1/v1/chat/completions", "`/v1` occurs twice. Leave it out"),
        ("/nothing", "`/docs` lists"),
    ],
)
def test_an_unknown_path_is_told_what_was_probably_meant(path: str, words: str) -> None:
    text = unknown_path_text("POST", path)
    assert text.startswith(f"There is no path `POST {path}` here")
    assert words in text


def test_every_entry_is_reached() -> None:
    for unserved in UNSERVED:
        assert any(unserved.pattern.fullmatch(path) for path in NOT_SERVED) or any(
            reason_unserved(path) == unserved.reason
            for path in ("/v1/skills", "/v1/audio/voices", "/v1/images/variations")
        )


def test_a_client_reads_the_reason_in_its_own_form(stack) -> None:
    answer = stack.post("/v1/vector_stores", {})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "endpoint_not_served")
    assert answer.headers["x-should-retry"] == "false"
    assert "/v1/embeddings" in error["message"]
    claude = stack.post("/v1/complete", {}, **{"anthropic-version": "2023-06-01"})
    assert claude.json()["error"]["type"] == "not_found_error"
    assert "`/v1/messages`" in claude.json()["error"]["message"]
    unknown = stack.post("/v1/nothing", {})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_url")


def test_a_model_is_not_deleted_and_its_client_reads_why(stack) -> None:
    def ask(method: str) -> httpx.Response:
        return httpx.request(
            method, f"{stack.url}/v1/models/chat", headers=stack.headers(), trust_env=False
        )

    answer = ask("DELETE")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]
    assert "the configuration names them" in error["message"]
    assert "the configuration names them" not in ask("PUT").text
    assert reason_of_method("DELETE", "/v1/files/f") is None
