"""Names of a provider's model that mean the same model, apart from date, region and case."""

import re
from functools import lru_cache
from typing import Final

_SNAPSHOT: Final = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")
REMEMBERED: Final = 4096  # clients make names up


def plain_names(name: str) -> tuple[str, str, str]:
    """Return the name without region, that in lower case, and that without its snapshot date."""
    base = name.partition("#")[0]
    lower = base.lower()
    return base, lower, _SNAPSHOT.sub("", lower)


@lru_cache(maxsize=REMEMBERED)
def counted_names(model: str) -> tuple[str, ...]:
    """Return the models whose budgets and limits count a logical model, itself first.

    A provider's model (`openai/gpt-4o-2024-11-20`) also counts under its shorter names, as in the
    price lookup. A model without a provider prefix has one name.
    """
    return tuple(dict.fromkeys((model, *plain_names(model)))) if "/" in model else (model,)
