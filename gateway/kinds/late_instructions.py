"""Instructions after the first turn, moved for own engines.

OpenAI accepts `system` and `developer` at any position. Chat templates of many open models accept
one `system` message at the start and refuse others. So an engine gets later instructions within a
user turn, where `/v1/messages` puts them, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.http.body import encode_raw

_ROLES: Final = ("system", "developer")  # no set: a role may be an unhashable list
_RESULTS: Final = ("tool", "function")
_SEPARATOR: Final = "\n\n"


def may_instruct_late(messages: bytes, roles: Sequence[str] | None = None) -> bool:
    """Return whether an instruction may follow the first message; texts may look like one.

    The check costs two searches from the end, and only a positive result leads to decoding. If
    `roles` of all messages are known, it costs nothing.
    """
    if roles is not None:
        return any(role in _ROLES for role in roles[1:])
    last = max(messages.rfind(b'"system"'), messages.rfind(b'"developer"'))
    return last > messages.find(b"}") >= 0


def move_instructions(messages: bytes) -> msgspec.Raw | None:
    """Return the messages with one instruction at the start, and later ones in user turns.

    Returns None if they are so already, or are no list of messages, which the engine will report.
    """
    try:
        given = msgspec.json.decode(messages, type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    late = [message for message in given[1:] if message.get("role") in _ROLES]
    if not late or not all(_is_joinable(message) for message in given if _joins(message)):
        return None
    return encode_raw(_moved(given))


def _moved(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    waiting: list[Any] = []  # contents for the next user turn
    for message in given:
        role = message.get("role")
        if role in _ROLES:
            if told and _leads(told[-1]):  # the user, or no one, was last
                told[-1] = _with(told[-1], [told[-1]["content"], message["content"]])
            elif told:
                waiting.append(message["content"])
            else:
                told.append({**message, "role": "system"})
            continue
        if role == "user":
            told.append(_with(message, [*waiting, message["content"]]))
        elif role in _RESULTS:  # results stay next to their call
            told.append(message)
            continue
        else:
            told += [_with({"role": "user"}, waiting)] if waiting else []
            told.append(message)
        waiting = []
    return [*told, _with({"role": "user"}, waiting)] if waiting else told


def _leads(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("system", "user")


def _joins(message: Mapping[str, Any]) -> bool:
    return message.get("role") in _ROLES or message.get("role") == "user"


def _is_joinable(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("content"), str | list)


def _with(message: Mapping[str, Any], contents: list[Any]) -> dict[str, Any]:
    """Return the message with the contents joined: as one text if all are texts."""
    if all(isinstance(content, str) for content in contents):
        return {**message, "content": _SEPARATOR.join(contents)}
    parts: list[Any] = []
    for content in contents:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": parts}
