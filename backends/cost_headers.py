"""Headers in which a provider states the cost of a request, in dollars."""

from collections.abc import Mapping

# LiteLLM's proxy: cost with its discounts and margins. Streams send their head before it is known.
COST_HEADER = "x-litellm-response-cost"


def cost_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that state a cost; names are in lower case."""
    value = headers.get(COST_HEADER)
    return {} if value is None else {COST_HEADER: value}
