"""Output beside the limit that a price states, and how far what was seen of it is believed."""

from typing import NamedTuple

from ledger.prices.modellimits import ModelLimits
from ledger.prices.rates import PriceTerms
from router.target_output import OVERRUN_LIMIT, TargetOutput
from router.target_prompts import TargetPrompts


class TargetOverruns(NamedTuple):
    """The overruns that targets were seen to bill."""

    output: TargetOutput
    prompts: TargetPrompts


def allowed_overrun(seen: int, limits: ModelLimits | None) -> int:
    """Return the tokens of a choice that an answer is held for beside its limit.

    No model thinks longer than its longest answer, whatever its target billed: a false figure
    raises the holds of others by one longest answer at most.
    """
    return seen if limits is None else min(seen, limits.output_tokens)


def stated_overrun(terms: PriceTerms, limits: ModelLimits | None, prompt_tokens: int) -> int:
    """Return the tokens of a choice that the price says are billed beside its limit.

    Where it states no number, a model thinks at most as long as its longest answer.
    """
    if not terms.reasoning_outside:
        return 0
    if terms.reasoning_limit:
        return terms.reasoning_limit
    return OVERRUN_LIMIT if limits is None else limits.max_output_tokens(prompt_tokens)
