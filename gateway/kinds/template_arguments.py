"""`chat_template_kwargs`: a client's arguments for an own engine's chat template.

They switch thinking on and off, for example. Plain values pass, since they can only select what the
template offers. Names by which an engine passes the conversation or the template are refused.
"""

import re
from typing import Any, Final

from gateway.errors import invalid_error
from gateway.http.body import Members, decode_member

TEMPLATE_ARGUMENTS: Final = "chat_template_kwargs"
ARGUMENTS_LIMIT: Final = 16
TEXT_LIMIT: Final = 256  # characters: enough for an option, too few for a conversation
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Of `apply_chat_template`, and names that templates read.
_TAKEN: Final = frozenset((
    "add_generation_prompt", "add_special_tokens", "chat_template", "continue_final_message",
    "conversation", "custom_tools", "documents", "functions", "max_length", "messages", "padding",
    "return_assistant_tokens_mask", "return_dict", "return_tensors", "self", "tokenize",
    "tokenizer_kwargs", "tools", "tools_in_user_message", "truncation",
))  # fmt: skip


def check_template_arguments(members: Members) -> None:
    """Raise `RequestError` with the name of an argument that is not allowed."""
    value = decode_member(members, TEMPLATE_ARGUMENTS, Any)
    if value is None:
        members.pop(TEMPLATE_ARGUMENTS, None)
        return
    if not isinstance(value, dict):
        raise invalid_error(TEMPLATE_ARGUMENTS, "must be an object of plain values.")
    if len(value) > ARGUMENTS_LIMIT:
        raise invalid_error(TEMPLATE_ARGUMENTS, f"has more than {ARGUMENTS_LIMIT} members.")
    for name, argument in value.items():
        if not _NAME.fullmatch(name) or name.startswith("__"):
            raise invalid_error(
                TEMPLATE_ARGUMENTS,
                "has a member with an invalid name: use letters, digits and `_`.",
            )
        place = f"{TEMPLATE_ARGUMENTS}.{name}"
        if name in _TAKEN:
            raise invalid_error(place, "is set by the engine itself. Leave it out.")
        if isinstance(argument, dict | list):
            raise invalid_error(place, "must be a string, a number, true, false or null.")
        if isinstance(argument, str) and len(argument) > TEXT_LIMIT:
            raise invalid_error(place, f"has more than {TEXT_LIMIT} characters.")
