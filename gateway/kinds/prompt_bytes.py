"""Bytes of a request that a target may read as its prompt, from which the hold is made.

Besides the conversation, these are every schema, tool, document and prediction in a vendor's
member, known or not. So the members that no model reads are listed, and all others count. A bound
that is too large holds money for a moment; one that is too small lets a budget be exceeded.
"""

from typing import Final

from gateway.http.body import Members
from gateway.kinds.rewritten_text import redumped_arguments, redumped_tokens, spelled_bytes

_NEVER_READ = frozenset((
    "add_generation_prompt", "add_special_tokens", "allowed_token_ids", "bad_words",
    "continue_final_message", "dimensions", "ebnf", "echo", "encoding_format",
    "frequency_penalty", "function_call", "guided_choice", "guided_grammar", "guided_json",
    "guided_regex", "ignore_eos", "include_stop_str_in_output", "json_schema", "length_penalty",
    "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "min_p",
    "min_tokens", "modalities", "model", "n", "parallel_tool_calls", "presence_penalty",
    "prompt_cache_key", "reasoning_effort", "regex", "repetition_penalty", "safety_identifier",
    "seed", "service_tier", "skip_special_tokens", "stop", "stop_token_ids", "store", "stream",
    "stream_options", "structural_tag", "structured_outputs", "temperature", "tool_choice",
    "top_k", "top_logprobs", "top_p", "user", "verbosity",
))  # fmt: skip
# With only these members, a target reads the text that it was sent; tools are descriptions.
TEXT_MEMBERS = _NEVER_READ | frozenset((
    "cache_salt", "documents", "functions", "input", "messages", "priority", "prompt", "query",
    "reasoning", "thinking", "tools", "top_n",
))  # fmt: skip

# Never part of a prompt, whatever their length; an engine processes them in another way.
_NOT_WRITTEN = frozenset((
    "allowed_token_ids", "bad_words", "logit_bias", "metadata", "prompt_cache_key",
    "safety_identifier", "stop", "stop_token_ids", "user",
))  # fmt: skip
# Most requests have some of these, and they are never long.
_SHORT = frozenset((
    "frequency_penalty", "max_completion_tokens", "max_tokens", "model", "n", "presence_penalty",
    "seed", "stream", "stream_options", "temperature", "top_k", "top_p",
))  # fmt: skip
_SELDOM_READ = _NEVER_READ - _NOT_WRITTEN - _SHORT
_TEXTS = frozenset(("input", "prompt", "query"))  # a target reads all others as JSON
LONG_BYTES: Final = 256  # of a member about the answer; schemas and lists of tools are longer


def prompt_bytes(members: Members) -> int:
    """Return the bytes of the conversation and of every member that may be in the prompt."""
    found = 0
    for name, value in members.items():  # for every request: a generator takes twice as long
        if name not in _NEVER_READ:
            found += len(memoryview(value))
    return found


def seldom_read_bytes(members: Members, *, calls: bool = True) -> int:
    """Return the bytes that only few targets read: long schemas and tools, and rewritten text.

    They are in each bound but in no estimate, as most targets read none of them. `calls`: messages
    may have tool calls.
    """
    found = rewritten_tokens(members, calls=calls)
    if _SELDOM_READ.isdisjoint(members):
        return found
    for name, value in members.items():
        if name in _SELDOM_READ and (size := len(memoryview(value))) > LONG_BYTES:
            found += size + redumped_tokens(bytes(value))
    return found


def rewritten_tokens(members: Members, *, calls: bool = True) -> int:
    """Return tokens beyond a prompt's bytes, if a target normalises it or rewrites its JSON."""
    found = 0
    for name, value in members.items():
        if name in _NEVER_READ:
            continue
        raw = bytes(value)
        found += spelled_bytes(raw)
        if name == "messages":
            found += redumped_arguments(raw) if calls else 0
        elif name not in _TEXTS:
            found += redumped_tokens(raw)
    return found
