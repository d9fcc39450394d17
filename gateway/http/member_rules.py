"""Rules for body members that no target gets, and the error or header for each.

Members that only affect where, as whom or in which order to call are removed and named in
`x-breakeven-ignored`. Members that would change the answer are rejected, unless they are empty. All
other members pass through.
"""

from collections.abc import Container, Iterable
from typing import Final

from gateway.errors import RequestError
from gateway.http.body import Members

# Set by the configuration: addresses, credentials, behaviour of a proxy.
_OPERATORS: Final = frozenset((
    "api_base", "api_key", "base_url", "headers", "extra_headers", "extra_query", "extra_body",
    "organization", "custom_llm_provider", "additional_drop_params", "drop_params",
    "allowed_openai_params", "num_retries", "max_retries",
    # Set by the gateway per team: sharing of prefix caches, and priority.
    "cache_salt", "priority",
))  # fmt: skip
# Internals of engines: addresses of other machines, request ids, metric labels, cache slots,
# intervals of streaming.
_ENGINES: Final = frozenset((
    "kv_transfer_params", "ec_transfer_params", "request_id", "rid", "media_io_kwargs",
    "bootstrap_host", "bootstrap_port", "bootstrap_room", "disaggregated_params",
    "disagg_prefill_dp_rank", "routed_dp_rank", "data_parallel_rank", "conversation_params",
    "session_params", "extra_key", "custom_labels", "id_slot", "slot_id",
    "guided_decoding_backend", "stream_interval", "padding", "chat_template_kwargs",
))  # fmt: skip
_CODE: Final = "it is run by the engine."
_PROMPT: Final = "it stands for a conversation that nobody here could read."
_LARGE: Final = "such answers are of many times their text's size."
_CHANGING: Final = {
    "chat_template": _CODE, "logits_processors": _CODE, "custom_logit_processor": _CODE,
    "custom_params": _CODE, "vllm_xargs": _CODE,
    "mm_processor_kwargs": "it changes how many tokens a picture has.",
    "best_of": "answers that nobody sees are charged as well. Use `n`.",
    **dict.fromkeys(
        ("prompt_token_ids", "prompt_token_ids_b64", "input_ids", "input_embeds", "prompt_embeds",
         "embed_overrides", "embed_override_token_id"),
        _PROMPT,
    ),
    **dict.fromkeys(
        ("prompt_logprobs", "return_hidden_states", "return_routed_experts",
         "return_context_logits"),
        _LARGE,
    ),
}  # fmt: skip
DENIED: Final = _OPERATORS | _ENGINES | _CHANGING.keys()
# Members that an operator may allow. Addresses and credentials are never allowed.
ALLOWABLE: Final = DENIED - _OPERATORS - {"chat_template_kwargs"}
# Members without which no request can be read.
NEEDED: Final = frozenset(("model", "messages", "prompt", "input", "query", "documents"))
_EMPTY: Final = frozenset((b"false", b"0", b"{}", b"[]", b'""'))  # empty values


class MemberRules:
    """Rules of one gateway.

    `allowed` names of `ALLOWABLE` pass through; `refused` names are always an error.
    """

    __slots__ = ("_judged", "_refused")

    def __init__(self, allowed: Iterable[str] = (), refused: Iterable[str] = ()) -> None:
        self._refused = frozenset(refused)
        self._judged = (DENIED - frozenset(allowed)) | self._refused

    def drop_denied(self, members: Members, judged_later: Container[str] = ()) -> tuple[str, ...]:
        """Remove denied members; return the names of those that were not `null`.

        `judged_later` are names for which the request kind has its own rules. Raises `RequestError`
        for a rejected member.
        """
        judged = self._judged
        if judged.isdisjoint(members):
            return ()
        ignored = []
        for name in judged.intersection(members):
            if name in self._refused:
                raise _refusal(name, "this gateway's operator does not allow it. Leave it out.")
            if name in judged_later:
                continue
            value = bytes(members.pop(name)).strip()
            if value == b"null":
                continue
            if name not in _CHANGING or value in _EMPTY:
                ignored.append(name)
            elif name != "best_of" or value != bytes(members.get("n", b"1")).strip():
                raise _refusal(name, _CHANGING[name])
        return tuple(sorted(ignored))


def _refusal(name: str, why: str) -> RequestError:
    return RequestError("unsupported", f"`{name}` is not taken: {why} Leave it out.", param=name)


STRICT: Final = MemberRules()
