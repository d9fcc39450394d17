"""Output billed on top of a request's limit: as the price states, and as observed."""

from typing import NamedTuple

from ledger.prices.modellimits import ModelLimits
from ledger.prices.rates import PriceTerms
from router.target_output import OVERRUN_LIMIT, TargetOutput
from router.target_prompts import TargetPrompts


class TargetOverruns(NamedTuple):
    """Observed overruns of all targets: output tokens and prompt tokens."""

    output: TargetOutput
    prompts: TargetPrompts


def allowed_overrun(seen: int, limits: ModelLimits | None) -> int:
    """Return the observed overrun per choice in tokens, capped at the model's longest answer.

    The cap limits the effect of a wrong observation on other requests' holds to one longest answer.
    """
    return seen if limits is None else min(seen, limits.output_tokens)


def stated_overrun(terms: PriceTerms, limits: ModelLimits | None, prompt_tokens: int) -> int:
    """Return the tokens per choice that the price allows on top of the request's limit.

    If the price states no number, the limit is the longest answer of the model.
    """
    if not terms.reasoning_outside:
        return 0
    if terms.reasoning_limit:
        return terms.reasoning_limit
    return OVERRUN_LIMIT if limits is None else limits.max_output_tokens(prompt_tokens)
