"""Prices of a replay by the token, without schedules and fees."""

from typing import NamedTuple


class ApiPrice(NamedTuple):
    """What an API charges, in pico-USD per token (micro-USD per million tokens)."""

    input_pusd: int
    output_pusd: int

    def of(self, prompt_tokens: float, output_tokens: float) -> int:
        """Pico-USD."""
        return round(prompt_tokens * self.input_pusd + output_tokens * self.output_pusd)
