"""Headers in which a provider states what a request costs, in dollars."""

from collections.abc import Mapping

# Of LiteLLM's proxy: the cost with its own discounts and margins. A stream's head is sent before.
COST_HEADER = "x-litellm-response-cost"


def cost_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those of the headers that state a cost; names are lower-case."""
    value = headers.get(COST_HEADER)
    return {} if value is None else {COST_HEADER: value}
