"""Usage of one model in one bucket of a provider's export."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.economics.cost import TokenBasis
from ledger.journals.records import TokenCounts
from ledger.prices.book import prompt_tokens

COUNT_LIMIT = 10**15  # tokens of one bucket: a larger number is another figure
SHOWN = 40  # characters of a cell in a fault


@dataclass(frozen=True, slots=True)
class UsageBucket:
    """Usage of one model in one bucket. `name` is the price book's; `tier` a service tier.

    `billed_pusd` is the cost that our own export states. `prompt` is the length of a prompt in
    tokens, if the export states it without a number of requests.
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
    """Return the cell as a number. An empty cell is 0; an invalid one is 0 and a fault."""
    text = str(row.get(name) if row.get(name) is not None else "").strip()
    if not text:
        return 0
    number = text.removesuffix(".0")
    if (
        not (number.isascii() and number.isdecimal())
        or len(number) > len(str(COUNT_LIMIT))  # Python refuses to convert too many digits
        or int(number) > COUNT_LIMIT
    ):
        faults.append(f"{where}, column `{name}`: `{text[:SHOWN]}` is not a count")
        return 0
    return int(number)
