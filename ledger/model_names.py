"""Names of a provider's model that mean the same model: with a date, with a region, in any case."""

import re
from functools import lru_cache
from typing import Final

_SNAPSHOT: Final = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")
REMEMBERED: Final = 4096  # clients make names up


def plain_names(name: str) -> tuple[str, str, str]:
    """Return the name without its region, that in small letters, and that without a snapshot."""
    base = name.partition("#")[0]
    lower = base.lower()
    return base, lower, _SNAPSHOT.sub("", lower)


@lru_cache(maxsize=REMEMBERED)
def counted_names(model: str) -> tuple[str, ...]:
    """Return the models on whose budgets and limits a logical model counts, itself first.

    What goes to a provider by its own name (`openai/gpt-4o-2024-11-20`) counts also where it is
    named less exactly, as prices are found; a model without a provider before it has one name.
    """
    return tuple(dict.fromkeys((model, *plain_names(model)))) if "/" in model else (model,)
