"""Charges of a price list that our terms do not cover, and requests that may incur them.

A price with such a charge is *partly known*: its other amounts are exact, but a request that may
incur the charge has no upper bound. The names are stored with the price. The name decides which
requests are affected; an unknown name affects every request.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import lru_cache


class FeeTrigger(StrEnum):
    """The feature of a request that triggers a charge.

    `images` and `hosted_tools` are names of features. `LIMIT` is not a charge, but a number without
    which there is no bound. `DISCOUNT` only lowers a price that is booked in full, so bounds ignore
    it.
    """

    ANY = "any"
    MEDIA = "images"  # pictures, sound, video
    SOUND = "sound"  # counted in usage; bounds already cover cached sound
    HOSTED_TOOLS = "hosted_tools"  # searches and tools that the provider runs
    LIMIT = "limit"
    OPTION = "option"  # a member of the provider's own, such as a faster mode
    DISCOUNT = "discount"


SEARCH_FEE = "search_context_cost_per_query"
# For a model that searches on every request and whose price list has no search price.
SEARCH_OF_EVERY_REQUEST = "search_of_every_request"
MOST_SEARCHES = "max_searches"  # the maximum per request, for a model that makes many searches
# Names that a price per search covers for a request with a limited number of searches.
OF_COUNTED_SEARCHES = frozenset((SEARCH_FEE, MOST_SEARCHES))
_NAMES: tuple[tuple[FeeTrigger, tuple[str, ...]], ...] = (
    (
        FeeTrigger.HOSTED_TOOLS,
        (
            SEARCH_FEE, "web_search_.+", ".+_grounding_cost_per_query", "file_search_.+",
            "code_interpreter_.+", "computer_use_.+", "vector_store_.+",
            "(web|storage)_searches_kcount",  # in genai-prices
        ),
    ),
    (
        FeeTrigger.SOUND,
        ("cache_read_input_audio_token_cost(_.+)?", "cache_audio_read_mtok"),
    ),
    (
        FeeTrigger.MEDIA,
        (
            "input_cost_per_(image|video|audio)(_.+)?",
            "cache_read_input_image_token_cost(_.+)?",
            "input_(image|video|audio)_(mtok|hours)", "cache_image_read_mtok", "audio_hours",
        ),
    ),
    (FeeTrigger.LIMIT, (MOST_SEARCHES,)),
    (FeeTrigger.OPTION, ("provider_specific_entry",)),
    (
        FeeTrigger.DISCOUNT,
        (
            "off_peak_pricing", "explicit_cache_read_input_token_cost",
            "input_cost_per_token_cache_hit",
        ),
    ),
)  # fmt: skip
_TRIGGERS = tuple((re.compile("|".join(names)), trigger) for trigger, names in _NAMES)
# Names of amounts of money, in today's map and in later ones.
_MONEY = re.compile(r"cost|pric(e|ing)|(^|_)fees?(_|$)|surcharge|multiplier|specific_entry")
# The same charge in another unit (characters, a provider's own units), or a charge of a path that
# the gateway does not serve (OpenAI's /v1/decisions).
_INSTEAD = re.compile(r".+_cost_per_character(_.+)?|.+_dbu_cost_per_.+|.+_decisions")
# Charged like another field, if the list states an equal price for both.
_ALIKE = {
    "input_cost_per_image_token": "input_cost_per_token",
    "input_cost_per_video_token": "input_cost_per_token",
    "citation_cost_per_token": "input_cost_per_token",
    "output_cost_per_video_token": "output_cost_per_token",
    "input_cost_per_token_cache_hit": "cache_read_input_token_cost",
    "cache_read_input_audio_token_cost": "cache_read_input_token_cost",
    "explicit_cache_read_input_token_cost": "cache_read_input_token_cost",
}
_OUTPUT = re.compile(r"output_cost_per_(image|video)(_.+)?")


def trigger_of(name: str) -> FeeTrigger:
    """Return what triggers the charge of this name."""
    for pattern, trigger in _TRIGGERS:
        if pattern.fullmatch(name):
            return trigger
    return FeeTrigger.ANY


def charged_terms(names: Collection[str], features: Collection[str]) -> tuple[str, ...]:
    """Return the names that a request with these features may be charged."""
    words = {FeeTrigger.ANY.value, *features}
    return tuple(name for name in names if trigger_of(name).value in words)


def unlimited_terms(names: Collection[str], features: Collection[str]) -> tuple[str, ...]:
    """Return the names that leave a request with these features without an upper bound."""
    return charged_terms(names, [*features, FeeTrigger.LIMIT.value])


def doubtful_terms(names: Collection[str]) -> tuple[str, ...]:
    """Return the names that some request may be charged, or needs for its upper bound."""
    harmless = (FeeTrigger.OPTION, FeeTrigger.DISCOUNT)
    return tuple(name for name in names if trigger_of(name) not in harmless)


def answered(names: Collection[str], *, per_request: bool, searches: bool) -> tuple[str, ...]:
    """Return the names of a market list that a price file leaves open.

    `per_request`: the file states a fee per request. `searches`: the file states a price of a
    search and the maximum number of searches.
    """
    of_searches = (SEARCH_FEE, SEARCH_OF_EVERY_REQUEST, MOST_SEARCHES)
    known = of_searches if per_request or searches else ()
    return tuple(name for name in names if name not in known)


def missing_limits(
    names: Collection[str], *, search_pusd: int, searches_limit: int, output_pusd: int
) -> tuple[str, ...]:
    """Return the names, with `MOST_SEARCHES` added if searches have a price but no maximum.

    A model without an output price is a reranker, whose request states its number of searches.
    """
    if not search_pusd or searches_limit or not output_pusd or MOST_SEARCHES in names:
        return tuple(names)
    return (*names, MOST_SEARCHES)


def unread_in_row(row: Mapping[str, object], read: Collection[str]) -> Iterator[str]:
    """Yield names of a map's row that state a charge and are not in `read`."""
    shown = row.get("supported_output_modalities")
    for name, value in row.items():
        if name in read or not _speaks_of_money(name) or not _is_charge(name, value):
            continue
        alike = _ALIKE.get(name)
        if _INSTEAD.fullmatch(name) or (alike is not None and row.get(alike) == value):
            continue
        made = _OUTPUT.fullmatch(name)
        if made and isinstance(shown, list) and made[1] not in shown:
            continue
        yield name


@lru_cache(1_024)  # a map has thousands of rows and a hundred names
def _speaks_of_money(name: str) -> bool:
    return _MONEY.search(name) is not None


def _is_charge(name: str, value: object) -> bool:
    """Return whether a field has an amount above zero."""
    if name == "off_peak_pricing":
        return bool(value)
    if isinstance(value, Mapping):  # the `us` of a provider's own entry is a regional surcharge
        own = name == "provider_specific_entry"
        return any(_is_charge("", item) for key, item in value.items() if not (own and key == "us"))
    if isinstance(value, list):
        return any(_is_charge("", item) for item in value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return False
    try:
        return Decimal(value) > 0
    except InvalidOperation:
        return False
