"""Who asked for what, and when: the input of a replay."""

from typing import NamedTuple


class Price(NamedTuple):
    """What an API charges, in pico-USD per token (micro-USD per million tokens)."""

    input_pusd: int
    output_pusd: int

    def of(self, prompt_tokens: float, output_tokens: float) -> int:
        """Pico-USD."""
        return round(prompt_tokens * self.input_pusd + output_tokens * self.output_pusd)


class Arrival(NamedTuple):
    """One request: `output_tokens` is what it will turn out to be, which no decision may read."""

    at_s: float
    prompt_tokens: int
    output_tokens: int
    model: str
    tenant: str = ""
