"""Documented behaviour of providers when a client disconnects: stop, or finish the answer.

Only what a provider itself documents is listed. Others are unknown and treated as finishing the
answer: it is read to the end, so that its usage is known. `providers.NAME.on_disconnect` of the
configuration overrides this list.
"""

from collections.abc import Mapping
from typing import Final, Literal

OnDisconnect = Literal["stops", "continues", "unknown"]

STOPS: Final = "stops"
CONTINUES: Final = "continues"
UNKNOWN: Final = "unknown"

# Looked up on 2026-11-26. Neither OpenAI (its guide of background mode tells how to cancel a
# response, not what is billed), Azure, Anthropic, Google, Bedrock, DeepSeek, Fireworks, Groq,
# Mistral, Together nor xAI document what a chat completion costs that is disconnected.
DOCUMENTED: Final[Mapping[str, OnDisconnect]] = {
    # https://openrouter.ai/docs/api-reference/streaming, "Stream Cancellation": only some of the
    # providers behind it stop, and answers in one piece never do; those are billed in full.
    "openrouter": CONTINUES,
    # https://novita.ai/docs/guides/llm-billing, "499 Client Disconnected" (2026-03-27): charged for
    # the usage "regardless of disconnect timing"; whether the model stops is not said.
    "novita": CONTINUES,
}


def documented(provider: str) -> OnDisconnect:
    """Return what this provider documents, `unknown` if it documents nothing."""
    return DOCUMENTED.get(provider, UNKNOWN)
