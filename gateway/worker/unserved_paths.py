"""Paths of known APIs that are not served: the reason for each, and the alternative.

Clients get the reason as an error in their API's format, with status 404. SDKs would retry a 5xx,
and a retry cannot help.
"""

import difflib
import re
from typing import Final, NamedTuple

from gateway.kinds import KIND_PATHS
from gateway.request.dialects.translated_paths import SPOKEN


class UnservedPath(NamedTuple):
    """Pattern of unserved paths, and the sentences in their error."""

    pattern: re.Pattern[str]
    reason: str


def _path(pattern: str, reason: str) -> UnservedPath:
    return UnservedPath(re.compile(rf"{pattern}(?:/.*)?"), reason)


# Other forms of `/v1`: no prefix, Azure's, and with a deployment or engine name.
_ROOTS: Final = "(?:/v1|/openai(?:/v1|/deployments/.+)?|(?:/v1)?/engines/.+)?"


def _api(pattern: str, reason: str) -> UnservedPath:
    return _path(f"{_ROOTS}/{pattern}", reason)


UNSERVED: Final = (
    _api(
        "(?:assistants|threads)",
        "Assistants and threads are not served: OpenAI retired them on 2026-08-26. "
        "Use `/v1/responses` or `/v1/chat/completions`.",
    ),
    _api(
        "(?:vector_stores?|rag|indexes)",
        "Vector stores are not served: the gateway keeps no documents. Embed texts with "
        "`/v1/embeddings` and `/v1/rerank`, keep them in a store of your own, and send what is "
        "found in the prompt.",
    ),
    _api(
        "(?:fine_tuning|fine-tunes|checkpoints)",
        "Fine-tuning is not served: the gateway trains nothing. Train at the provider and "
        "configure the model; adapters (LoRA) of own engines are models, too.",
    ),
    _api(
        "(?:evals|graders)",
        "Evaluations are not served. Run the harness on `/v1/chat/completions` or `/v1/batches`.",
    ),
    _api(
        "containers",
        "Containers are not served: the gateway runs no code. Run the tool at the client and "
        "declare it as a function.",
    ),
    _api(
        "videos?",
        "Videos are not served: no price of the book is by the second of a film. Ask the provider.",
    ),
    _api(
        "realtime",
        "Realtime sessions are not served: they are charged by the minute and no hold bounds them. "
        "Use `/v1/audio/transcriptions`, `/v1/chat/completions` and `/v1/audio/speech` in turn.",
    ),
    _api(
        "uploads",
        "Uploads in parts are not served. Send the whole file to `/v1/files`.",
    ),
    _api(
        "ocr",
        "Reading of documents (OCR) is not served: no price of the book is by the page. Send the "
        "pages as pictures or as a `file` to `/v1/chat/completions`.",
    ),
    _api(
        "search",
        "Searches without a model are not served. Offer the tool `web_search` in `/v1/responses`, "
        "at a provider with `features: [hosted_tools]`, or let the client call a search service.",
    ),
    _api(
        "interactions",
        "Gemini's interactions are not served. Use `/v1/responses`, which keeps conversations too.",
    ),
    _path(
        "/v1/(?:chatkit|skills|prompts|agents|workflows|sessions|environments|vaults|memory_stores"
        "|user_profiles|deployments|deployment_runs|dreams|tunnels|live|decisions|safety"
        "|content_provenance_checks|webhook_endpoints|webhook_event_types)",
        "This is a service of the provider's own, and nothing here keeps it. Send what it holds in "
        "the request to `/v1/responses` or `/v1/messages`.",
    ),
    _api(
        "audio/(?:voices|voice_consents)",
        "Own voices are not served. Name a voice that the provider has in `/v1/audio/speech`.",
    ),
    _api(
        "images/variations",
        "Variations of pictures are not served: only dall-e-2 ever made them. Send the picture to "
        "`/v1/images/edits` with a `prompt` that asks for a variation.",
    ),
    _path(
        "/v1/complete",
        "Anthropic retired text completions. Use `/v1/messages`.",
    ),
    _path(
        "/v1(?:beta|alpha)?[0-9]*/(?:.+/)?models/.+:[a-zA-Z]+",
        "Gemini's own form is not served. Use `/v1/chat/completions` with the model's name; "
        "Google's clients can be given an OpenAI-compatible address.",
    ),
    _path(
        "/v1(?:beta|alpha|internal)[0-9]*(?::[a-zA-Z]+)?",
        "Gemini's own API is not served. Use `/v1/chat/completions` and `/v1/models`.",
    ),
    _path(
        "/model/.+/(?:converse|converse-stream|invoke|invoke-with-response-stream)",
        "Bedrock's own form is not served: AWS signs its requests. Use `/v1/messages` or "
        "`/v1/chat/completions`.",
    ),
    _path(
        "/api/(?:chat|generate|embed|embeddings|tags|show|ps|version)",
        "Ollama's own form is not served. Use `/v1/chat/completions`, `/v1/embeddings` and "
        "`/v1/models`.",
    ),
    UnservedPath(
        re.compile("/v[12]/(?:chat|embed|tokenize|detokenize|classify|summarize|generate)"),
        "Cohere's own form is not served for this. Use `/v1/chat/completions`, `/v1/embeddings`, "
        "`/tokenize`, or Cohere's `/v2/rerank`.",
    ),
    _path(
        "/(?:v1/)?(?:mcp|sse)",
        "MCP servers are not served: the gateway calls no tools. Connect the client to the MCP "
        "server, and declare its tools as functions.",
    ),
    _path(
        "/(?:pooling|classify|generate|generate_stream|invocations|encode|completion|infill|props"
        "|slots|load|info|version|ping|server_info|get_server_info|get_model_info|flush_cache"
        "|reset_prefix_cache|sleep|wake_up|v1/load_lora_adapter|v1/unload_lora_adapter)",
        "This path of an engine is not served. `/v1/embeddings`, `/v1/score`, `/v1/rerank`, "
        "`/tokenize` and `/v1/completions` are; adapters are configured as models.",
    ),
    _path(
        "/openai/deployments",
        "This path of a deployment is not served. `chat/completions`, `completions`, "
        "`embeddings`, `audio/*`, `images/generations` and `images/edits` are. `/v1/models` lists "
        "the models.",
    ),
    _path(
        "/openai/.+",
        "This service of Azure is not served. Use `/openai/v1/responses` or "
        "`/openai/deployments/NAME/chat/completions`.",
    ),
    _path(
        "/(?:anthropic|gemini|vertex_ai|vertex-ai|bedrock|cohere|mistral|azure|azure_ai|vllm"
        "|openrouter|openai_passthrough|assemblyai|langfuse|watsonx|deepgram)",
        "Requests are not passed through to a provider's own API. Leave this part out of the base "
        "address: `/v1/messages` and `/v1/chat/completions` serve the models of all providers.",
    ),
    _path(
        "/v1/(?:organizations|projects|organization/(?:admin_api_keys|audit_logs|certificates"
        "|data_retention|external_keys|external_storage|groups|invites|projects/.+|roles"
        "|spend_alerts|spend_limit|users|workload_identity_providers))",
        "This part of a provider's administration is not served. Teams, keys, budgets, usage and "
        "costs are at `/v1/organization/...` and by `breakeven keys`.",
    ),
    _path(
        "/v1/organization/usage/(?!completions|embeddings|moderations|images|audio_)[a-z_]+",
        "Usage of this is not counted here. `completions`, `embeddings`, `moderations`, `images`, "
        "`audio_speeches` and `audio_transcriptions` are; what all cost is at "
        "`/v1/organization/costs`.",
    ),
    _path(
        "/health/[a-z_]+",
        "Probes are at `/healthz` (the process answers) and `/readyz` (requests are served). What "
        "each target answers is in `/metrics`, as `breakeven_requests_total`.",
    ),
    _path(
        "/(?:key|user|team|customer|end_user|spend|global|organization|budget|tag|model|model_group"
        "|credentials|config|cache|guardrails|utils|sso|prompts)/[a-z_]+",
        "LiteLLM's administration is not served: the configuration names models and rules. Keys, "
        "teams and costs are at `/v1/organization/...` and by `breakeven keys`, models at "
        "`/model/info`.",
    ),
)


# Methods that the original API has on paths served here.
UNSERVED_METHODS: Final = {
    "DELETE": _path(
        "/v1/models/.+",
        "Models are not deleted by a request: the configuration names them. Take the model out of "
        "`models` there and reload.",
    ),
}


_TWICE: Final = re.compile(r"(/v[12])(?:/openai)?(/v[12]/.*)")
_NEAR: Final = 0.8  # difflib ratio: about one letter or ending differs


def unknown_path_text(method: str, path: str) -> str:
    """Return advice for a path that belongs to no known API."""
    words = f"There is no path `{method} {path}` here"
    if twice := _TWICE.fullmatch(path):
        return f"{words}: `{twice[1]}` occurs twice. Leave it out of the client's base URL."
    near = difflib.get_close_matches(path, (*KIND_PATHS, *SPOKEN, "/v1/models"), 1, _NEAR)
    if near:
        return f"{words}: did you mean `{near[0]}`?"
    return f"{words}. `/docs` lists all paths."


def reason_of_method(method: str, path: str) -> str | None:
    """Return why a served path lacks a method of its API; None if the API has no such method."""
    unserved = UNSERVED_METHODS.get(method)
    return unserved.reason if unserved and unserved.pattern.fullmatch(path) else None


def reason_unserved(path: str) -> str | None:
    """Return why a path is not served and what to use; None for a path of no known API."""
    for unserved in UNSERVED:
        if unserved.pattern.fullmatch(path):
            return unserved.reason
    return None
