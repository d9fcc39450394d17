"""Addresses of Azure and without `/v1`: which path each stands for, and the model that it names."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.forms import open_form
from gateway.kinds import KIND_PATHS
from gateway.request.client_paths import ClientPath, canonical_path, with_model

DEPLOYED = "/openai/deployments/"


@pytest.mark.parametrize(
    ("address", "path", "model"),
    [
        (DEPLOYED + "gpt-4o/chat/completions", "/v1/chat/completions", "gpt-4o"),
        (DEPLOYED + "gpt-4o/completions", "/v1/completions", "gpt-4o"),
        (DEPLOYED + "a/b/c/embeddings", "/v1/embeddings", "a/b/c"),
        (DEPLOYED + "chat/chat/completions", "/v1/chat/completions", "chat"),
        (DEPLOYED + "w/audio/transcriptions", "/v1/audio/transcriptions", "w"),
        ("/engines/m/chat/completions", "/v1/chat/completions", "m"),
        ("/v1/engines/m/completions", "/v1/completions", "m"),
        ("/openai/v1/responses", "/v1/responses", None),
        ("/openai/v1/models/x", "/v1/models/x", None),
        ("/openai/responses/resp_1", "/v1/responses/resp_1", None),
        ("/openai/files", "/v1/files", None),
        ("/chat/completions", "/v1/chat/completions", None),
        ("/completions", "/v1/completions", None),
        ("/embeddings", "/v1/embeddings", None),
        ("/models", "/v1/models", None),
        ("/models/a/b", "/v1/models/a/b", None),
        ("/responses", "/v1/responses", None),
        ("/messages/count_tokens", "/v1/messages/count_tokens", None),
        ("/audio/translations", "/v1/audio/translations", None),
        ("/files/file-1/content", "/v1/files/file-1/content", None),
    ],
)
def test_an_address_stands_for_a_path(address: str, path: str, model: str | None) -> None:
    assert canonical_path(address) == ClientPath(path, model)


@pytest.mark.parametrize("path", sorted(KIND_PATHS))
def test_each_path_of_a_kind_has_both_forms(path: str) -> None:
    if not path.startswith("/v1/"):
        return
    operation = path.removeprefix("/v1")
    assert canonical_path(f"{DEPLOYED}m{operation}") == ClientPath(path, "m")
    assert canonical_path(f"/openai{path}") == ClientPath(path)


@pytest.mark.parametrize(
    "path",
    [
        "/", "", "/healthz", "/metrics", "/docs", "/v1/chat/completions", "/v1/models", "/model",
        "/chatter/completions", "/openai", "/openai/", "/openai/v1", DEPLOYED, DEPLOYED + "m",
        DEPLOYED + "m/extensions/chat", DEPLOYED + "/chat/completions", "/v2/rerank", "/usage",
        "//chat/completions", "/openai//v1/models", "chat/completions",
    ],
)  # fmt: skip
def test_other_addresses_stay(path: str) -> None:
    assert canonical_path(path) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"messages": []}', {"model": "m", "messages": []}),
        (b" \n{ }", {"model": "m"}),
        (b'{"model": null, "n": 1}', {"model": "m", "n": 1}),
        (b'{"model":"other","chat_template":"x"}', {"model": "m", "chat_template": "x"}),
    ],
)
def test_the_model_of_the_address_counts(text: bytes, expected: dict) -> None:
    assert json.loads(with_model(text, None, "m")) == expected


def test_a_body_with_the_same_model_keeps_its_bytes() -> None:
    text = b'{ "model" : "m", "messages": [ ] }'
    assert with_model(text, None, "m") is text


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b'"x"', b"\xff", b"null"])
def test_what_is_no_object_is_left_for_its_reader(text: bytes) -> None:
    assert with_model(text, None, "m") is text


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(RequestError) as error:
        with_model(b'{"model": "a", "user": "x", "user": "y"}', None, "m")
    assert error.value.row.code == "duplicate_key"


@pytest.mark.parametrize("named", [True, False])
def test_a_form_asks_for_the_model_of_its_address(named: bool) -> None:
    model = b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nother\r\n'
    file = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nxyz\r\n--b--'
    media = "multipart/form-data; boundary=b"
    form = open_form(with_model((model if named else b"") + file, media, "m"), media)
    assert (form.field("model"), form.file()) == ("m", b"xyz")
