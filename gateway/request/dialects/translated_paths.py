"""The paths of dialects other than chat."""

from collections.abc import Mapping
from typing import Final

from gateway.request.dialects.base import Dialect
from gateway.request.dialects.compaction import COMPACT
from gateway.request.dialects.messages import COUNT_TOKENS, MESSAGES
from gateway.request.dialects.responses import INPUT_TOKENS, RESPONSES

SPOKEN: Final[Mapping[str, Dialect]] = {
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": COUNT_TOKENS,
    "/v1/responses": RESPONSES,
    "/v1/responses/input_tokens": INPUT_TOKENS,
    "/v1/responses/compact": COMPACT,
}
