"""Decoder of a simulated server's requests: OpenAI bodies to `CompletionRequest`.

Only fields that change the answer are read. Every choice's whole answer is scripted here: generated
words up to a natural end, `max_tokens` or a stop string; a JSON document for `response_format`; a
tool call if `tool_choice` forces one. The server adds the timing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from backends.simulator import words
from backends.simulator.scripts import Script, make_script

IMAGE_TOKENS = 256  # a stand-in's price of a picture; only the simulated providers take any
FILE_TOKENS = 1024  # and of a document
COMPLETION_TOKENS = 16  # the default of the completions endpoint


class RefusedError(Exception):
    """A 4xx answer: `kind` is the upstream's error type, `param` the invalid field."""

    def __init__(self, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True)
class SimulatedRules:
    """Requests that this server accepts. Empty `models`: any name.

    `images` includes documents.
    """

    models: tuple[str, ...]
    context_tokens: int
    block_tokens: int
    images: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedChoice:
    index: int
    prompt_tokens: int
    hashes: tuple[int, ...]
    script: Script


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    chat: bool
    model: str
    stream: bool
    include_usage: bool
    continuous_usage: bool
    logprobs: int | None  # alternatives per token; None: not requested
    prompt_tokens: int  # billed once however many choices
    n: int
    choices: tuple[SimulatedChoice, ...]  # of the first prompt, then of the second, ...


def parse(body: bytes, *, chat: bool, rules: SimulatedRules) -> CompletionRequest:
    fields = decode(body)
    model = model_of(fields, rules)
    _check_stop(fields.get("stop"))
    prompts = [_chat_prompt(fields, rules)] if chat else _prompts(fields)
    n = _count(fields, "n", 1)
    options = fields.get("stream_options")
    options = options if isinstance(options, dict) else {}
    salt = str(fields.get("cache_salt") or "")
    choices: list[SimulatedChoice] = []
    for prompt in prompts:
        tokens = words.count(prompt)
        limit = _limit(fields, tokens, rules, chat=chat)
        hashes = words.block_hashes(prompt, block_tokens=rules.block_tokens, salt=salt)
        for _ in range(n):
            seed = words.seed_of(prompt, len(choices))
            script = make_script(fields, seed, limit, chat=chat)
            choices.append(SimulatedChoice(len(choices), tokens, hashes, script))
    return CompletionRequest(
        chat=chat,
        model=model,
        stream=bool(fields.get("stream")),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(
            options.get("include_usage") and options.get("continuous_usage_stats")
        ),
        logprobs=_logprobs(fields, chat=chat),
        prompt_tokens=sum(words.count(prompt) for prompt in prompts),
        n=n,
        choices=tuple(choices),
    )


def parse_embedding(body: bytes, rules: SimulatedRules) -> tuple[str, list[bytes], bool]:
    """Return model, inputs, and whether the vectors are requested in base64."""
    fields = decode(body)
    model = model_of(fields, rules)
    inputs = [_encode_entry(entry) for entry in _entries(fields, "input")]
    for entry in inputs:
        _fits(words.count(entry), rules)
    return model, inputs, fields.get("encoding_format") == "base64"


def decode(body: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise RefusedError("validation", f"invalid JSON: {error}", "body") from error
    if not isinstance(fields, dict):
        raise RefusedError("validation", "the body must be a JSON object", "body")
    return fields


def model_of(fields: Mapping[str, Any], rules: SimulatedRules) -> str:
    model = fields.get("model")
    if not isinstance(model, str):
        raise RefusedError("validation", "Field required: model", "body.model")
    if rules.models and model not in rules.models:
        aliases = ", ".join(rules.models)
        message = f"The model `{model}` does not exist. Valid aliases: {aliases}."
        raise RefusedError("model", message, "model")
    return model


def _chat_prompt(fields: Mapping[str, Any], rules: SimulatedRules) -> bytes:
    """Return the chat template: tools, one line per message, and the answer's opening."""
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RefusedError("validation", "Field required: messages", "body.messages")
    parts: list[bytes] = []
    if fields.get("tools"):
        parts.append(b"<|tools|>" + msgspec.json.encode(fields["tools"]))
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RefusedError("validation", "a message needs a role", "body.messages")
        parts.append(f"<|{message['role']}|>".encode())
        parts.append(_content(message.get("content"), rules))
        if message.get("tool_calls"):
            parts.append(msgspec.json.encode(message["tool_calls"]))
    parts.append(b"<|assistant|>")
    return b"".join(parts)


def _content(content: Any, rules: SimulatedRules) -> bytes:
    if content is None:
        return b""
    if isinstance(content, str):
        return content.encode()
    if not isinstance(content, list):
        raise RefusedError("validation", "content must be text or parts", "body.messages")
    parts: list[bytes] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            parts.append(part["text"].encode())
        elif kind == "image_url" and rules.images:
            parts.append(b"\0" * (IMAGE_TOKENS * words.TOKEN_BYTES))
        elif kind == "file" and rules.images:
            parts.append(b"\0" * (FILE_TOKENS * words.TOKEN_BYTES))
        else:
            raise RefusedError("validation", f"unsupported content part {kind}", "body.messages")
    return b"".join(parts)


def _prompts(fields: Mapping[str, Any]) -> list[bytes]:
    return [_encode_entry(entry) for entry in _entries(fields, "prompt")]


def _entries(fields: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return a text, a list of token ids, or a list of either as a list of inputs."""
    value = fields.get(name)
    if isinstance(value, str) and value:
        return [value]
    if isinstance(value, list) and value:
        return [value] if isinstance(value[0], int) else value
    raise RefusedError("validation", f"Field required: {name}", f"body.{name}")


def _encode_entry(entry: Any) -> bytes:
    """Return the bytes of an input; a token id is 4 bytes, one token of the stand-in."""
    if isinstance(entry, str):
        return entry.encode()
    if isinstance(entry, list) and entry and all(_is_token(token) for token in entry):
        return b"".join(i.to_bytes(words.TOKEN_BYTES, "big") for i in entry)
    raise RefusedError("validation", "a prompt is text or a list of token ids", "body.prompt")


def _is_token(token: Any) -> bool:
    return isinstance(token, int) and not isinstance(token, bool) and 0 <= token < 2**31


def _limit(fields: Mapping[str, Any], prompt: int, rules: SimulatedRules, *, chat: bool) -> int:
    _fits(prompt, rules)
    asked = fields.get("max_completion_tokens") or fields.get("max_tokens")
    room = rules.context_tokens - prompt
    if asked is None:
        return room if chat else min(room, COMPLETION_TOKENS)
    if not isinstance(asked, int) or asked < 1:
        raise RefusedError("validation", "max_tokens must be at least 1", "max_tokens")
    if asked > room:
        message = (
            f"max_tokens={asked} cannot be greater than max_model_len={rules.context_tokens}"
            f" less the {prompt} tokens of the prompt. Please request fewer output tokens."
            f" (parameter=max_tokens, value={asked})"
        )
        raise RefusedError("too_long", message, "max_tokens")
    return asked


def _fits(prompt: int, rules: SimulatedRules) -> None:
    if prompt >= rules.context_tokens:
        message = (
            f"This model's maximum context length is {rules.context_tokens} tokens. However, your"
            f" prompt contains at least {prompt} input tokens. Please reduce the length of the"
            f" input prompt. (parameter=input_tokens, value={prompt})"
        )
        raise RefusedError("too_long", message, "input_tokens")


def _count(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or value < 1:
        raise RefusedError("validation", f"{name} must be at least 1", name)
    return value


def _check_stop(stop: Any) -> None:
    listed = [stop] if isinstance(stop, str) else [] if stop is None else stop
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise RefusedError("validation", "stop must be a text or a list of texts", "stop")


def _logprobs(fields: Mapping[str, Any], *, chat: bool) -> int | None:
    value = fields.get("logprobs")
    if chat:
        alternatives = fields.get("top_logprobs") or 0
        return alternatives if value is True and isinstance(alternatives, int) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
