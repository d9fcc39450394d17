"""Match of own engines' weights with APIs that sell the same, by model name.

Vendors spell names differently: `Meta-Llama-3.1-8B-Instruct` and `llama-3.1-8b-instruct-fp8` are
the same weights. Names are compared by their last part in lower case, without the maker's name and
words for number format or speed.
"""

import re
from collections.abc import Iterable

_MAKERS = ("meta-", "mistralai-", "qwen-", "google-")
_VARIANT = re.compile(r"[-_.](awq|bf16|fp16|fp8|fp4|gptq|int4|int8|turbo|w4a16|w8a8)(?=$|[-_.])")


def same_weights(served: str, offers: Iterable[tuple[str, int]]) -> str | None:
    """Return the cheapest API of `offers` (`provider/model`, price) with the same weights."""
    wanted = _weights(served)
    fitting = [(price, name) for name, price in offers if price > 0 and _weights(name) == wanted]
    return min(fitting, default=(0, None))[1]


def _weights(name: str) -> str:
    last = _VARIANT.sub("", name.lower().rpartition("/")[2].replace("_", "-"))
    for maker in _MAKERS:
        last = last.removeprefix(maker)
    return last
