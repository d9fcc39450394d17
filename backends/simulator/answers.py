"""Encoding of OpenAI answers to a scripted `CompletionRequest`: a JSON body or events.

An event's constant part is encoded once per choice; a token costs one string slice and one JSON
string. Members and their order follow vLLM 0.32.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from backends.simulator import words
from backends.simulator.dialect import CompletionRequest, SimulatedChoice

DONE = b"data: [DONE]\n\n"
_LOGPROB = -1.0  # of every token: the simulator has no distribution to report

encode = msgspec.json.encode


class SimulatedAnswer:
    """An encoder of one request's answer; `id` without its prefix, `created` in epoch seconds."""

    def __init__(self, ask: CompletionRequest, *, id: str, created: int, fingerprint: str) -> None:  # noqa: A002  (as on the wire)
        self.id = f"chatcmpl-{id}" if ask.chat else f"cmpl-{id}"
        self._ask = ask
        self._created = created
        self._fingerprint = fingerprint
        kind = "chat.completion.chunk" if ask.chat else "text_completion"
        self._head = (
            b'data: {"id":%b,"object":"%b","created":%d,"model":%b,"system_fingerprint":%b'
            % (encode(self.id), kind.encode(), created, encode(ask.model), encode(fingerprint))
        )

    def opening_event(self, choice: SimulatedChoice) -> bytes:
        """Return the role event of a chat stream; nothing for completions."""
        if not self._ask.chat:
            return b""
        return self._event(
            b'{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,'
            b'"finish_reason":null}' % choice.index,
            choice.prompt_tokens,
            0,
        )

    def tokens(self, choice: SimulatedChoice, first: int, end: int) -> bytes:
        """Return the event with tokens `first` to `end`, with the finish reason after the last."""
        script = choice.script
        finish = script.finish_reason if end >= script.tokens else None
        piece = words.cut_text(script.text, first, end)
        logprobs = encode(self._logprobs(choice, first, end))
        tail = (
            b'"logprobs":%b,"finish_reason":%b' % (logprobs, encode(finish))
            if finish is None
            else b'"logprobs":%b,"finish_reason":%b,"stop_reason":%b'
            % (logprobs, encode(finish), encode(script.stop_reason))
        )
        if not self._ask.chat:
            body = b'{"index":%d,"text":%b,%b}' % (choice.index, encode(piece), tail)
        elif script.tool is None:
            body = b'{"index":%d,"delta":{"content":%b},%b}' % (choice.index, encode(piece), tail)
        else:
            call: dict[str, Any] = {"index": 0, "function": {"arguments": piece}}
            if first == 0:
                call["id"] = self._call_id(choice)
                call["type"] = "function"
                call["function"] = {"name": script.tool, "arguments": piece}
            delta = encode({"tool_calls": [call]})
            body = b'{"index":%d,"delta":%b,%b}' % (choice.index, delta, tail)
        return self._event(body, choice.prompt_tokens, end)

    def closing_events(self, cached_tokens: int) -> bytes:
        """Return the usage event, if requested, and the end mark."""
        if not self._ask.include_usage:
            return DONE
        usage = encode(self.usage(cached_tokens))
        return self._head + b',"choices":[],"usage":%b}\n\n' % usage + DONE

    def whole_body(self, cached_tokens: int, kept: dict[str, Any] | None = None) -> bytes:
        """Return the body of an unstreamed answer. `kept`: where its prompt's KV is kept."""
        ask = self._ask
        return encode(
            {
                "id": self.id,
                "object": "chat.completion" if ask.chat else "text_completion",
                "created": self._created,
                "model": ask.model,
                "choices": [self._choice(choice) for choice in ask.choices],
                "service_tier": None,
                "system_fingerprint": self._fingerprint,
                "usage": self.usage(cached_tokens),
                **({} if kept is None else {"kv_transfer_params": kept}),
            }
        )

    def usage(self, cached_tokens: int) -> dict[str, Any]:
        output = sum(choice.script.tokens for choice in self._ask.choices)
        return {
            "prompt_tokens": self._ask.prompt_tokens,
            "total_tokens": self._ask.prompt_tokens + output,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached_tokens},
        }

    def _event(self, choice: bytes, prompt_tokens: int, generated: int) -> bytes:
        if not self._ask.continuous_usage:
            return self._head + b',"choices":[%b]}\n\n' % choice
        usage = b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}' % (
            prompt_tokens,
            prompt_tokens + generated,
            generated,
        )
        return self._head + b',"choices":[%b],"usage":%b}\n\n' % (choice, usage)

    def _choice(self, choice: SimulatedChoice) -> dict[str, Any]:
        script = choice.script
        logprobs = self._logprobs(choice, 0, script.tokens)
        end = {
            "logprobs": logprobs,
            "finish_reason": script.finish_reason,
            "stop_reason": script.stop_reason,
        }
        if not self._ask.chat:
            return {"index": choice.index, "text": script.text, **end}
        message: dict[str, Any] = {"role": "assistant", "content": script.text, "refusal": None}
        if script.tool is not None:
            function = {"name": script.tool, "arguments": script.text}
            call = {"id": self._call_id(choice), "type": "function", "function": function}
            message |= {"content": "", "tool_calls": [call]}
        return {"index": choice.index, "message": message, **end}

    def _call_id(self, choice: SimulatedChoice) -> str:
        return f"chatcmpl-tool-{self.id[-12:]}{choice.index}"

    def _logprobs(self, choice: SimulatedChoice, first: int, end: int) -> dict[str, Any] | None:
        """Return log probabilities in the right form, with meaningless values."""
        wanted = self._ask.logprobs
        if wanted is None:
            return None
        pieces = [words.cut_text(choice.script.text, i, i + 1) for i in range(first, end)]
        if self._ask.chat:
            return {"content": [_chat_logprob(piece, wanted) for piece in pieces]}
        offsets = [i * words.TOKEN_BYTES for i in range(first, end)]
        return {
            "text_offset": offsets,
            "token_logprobs": [_LOGPROB] * len(pieces),
            "tokens": pieces,
            "top_logprobs": [{piece: _LOGPROB} if wanted else None for piece in pieces],
        }


def _chat_logprob(piece: str, alternatives: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"token": piece, "logprob": _LOGPROB, "bytes": list(piece.encode())}
    return {**entry, "top_logprobs": [entry] if alternatives else []}


def embeddings(model: str, vectors: Sequence[Any], prompt_tokens: int) -> bytes:
    return encode(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(vectors)
            ],
            "model": model,
            "usage": {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens},
        }
    )
