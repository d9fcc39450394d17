"""Usage of one model in one bucket of a provider's export, and how its counts are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.economics.cost import TokenBasis
from ledger.journals.records import TokenCounts
from ledger.prices.book import prompt_tokens

COUNT_LIMIT = 10**15  # tokens of one bucket: beyond it somebody wrote another figure there
SHOWN = 40  # characters of a cell in a fault


@dataclass(frozen=True, slots=True)
class UsageBucket:
    """Usage of one model in one bucket. `name` is the price book's; `tier` a service tier.

    `billed_pusd`: what our own export says it cost. `prompt`: how long a prompt was, in tokens,
    where that is told and not by the number of requests.
    """

    start_us: int
    end_us: int
    name: str
    tier: str
    requests: int
    tokens: TokenCounts
    billed_pusd: int | None = None
    prompt: int | None = None

    def volume(self, basis: TokenBasis) -> int:
        prompt = 0 if basis is TokenBasis.OUTPUT else prompt_tokens(self.tokens)
        return prompt + self.tokens.output


def count(row: Mapping[str, Any], name: str, where: str, faults: list[str]) -> int:
    """Nothing written is 0; what is no count is a fault, and 0."""
    text = str(row.get(name) if row.get(name) is not None else "").strip()
    if not text:
        return 0
    number = text.removesuffix(".0")
    if (
        not (number.isascii() and number.isdecimal())
        or len(number) > len(str(COUNT_LIMIT))  # so many digits Python does not even read
        or int(number) > COUNT_LIMIT
    ):
        faults.append(f"{where}, column `{name}`: `{text[:SHOWN]}` is no count")
        return 0
    return int(number)
