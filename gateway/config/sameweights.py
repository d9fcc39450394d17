"""Which API sells the weights that an own engine serves, by the model's name alone.

Vendors write one name in many ways: `Meta-Llama-3.1-8B-Instruct` and `llama-3.1-8b-instruct-fp8`
are the same weights. A name is what its last part says, in small letters, without the maker's name
in front and without the words for a number format or for speed.
"""

import re
from collections.abc import Iterable

_MAKERS = ("meta-", "mistralai-", "qwen-", "google-")
_VARIANT = re.compile(r"[-_.](awq|bf16|fp16|fp8|fp4|gptq|int4|int8|turbo|w4a16|w8a8)(?=$|[-_.])")


def same_weights(served: str, offers: Iterable[tuple[str, int]]) -> str | None:
    """The cheapest of `offers` (name as `provider/model`, price of a usual request) that fits."""
    wanted = _weights(served)
    fitting = [(price, name) for name, price in offers if price > 0 and _weights(name) == wanted]
    return min(fitting, default=(0, None))[1]


def _weights(name: str) -> str:
    last = _VARIANT.sub("", name.lower().rpartition("/")[2].replace("_", "-"))
    for maker in _MAKERS:
        last = last.removeprefix(maker)
    return last
