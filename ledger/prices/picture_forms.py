"""Forms of pictures that are made: quality and size, by which a price may list one.

A form is `QUALITY/SIZE`, or one of both: `hd/1024x1792`, `1024x1024`, `4k`. In a price it is a
tier, so a row's tier says which price it was charged.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ledger.prices.rates import STANDARD, PriceTerms

STANDARD_QUALITIES: Final = frozenset(("", "auto", "default", "standard"))
_SIZE: Final = re.compile(r"(\d{2,5})-?x-?(\d{2,5})", re.IGNORECASE)
_KEY: Final = re.compile(r"((?:[a-z]+/)?\d{2,5}-x-\d{2,5})/(.+)")


class PictureForm(NamedTuple):
    """Quality and size as asked for or told; "" where nobody says."""

    quality: str = ""
    size: str = ""


def picture_form(text: str) -> str:
    """Return a form in the words of prices: in lower case, sizes as `1024x1024`."""
    return _SIZE.sub(r"\1x\2", text.strip().lower()).strip("/")


def form_of(quality: str, size: str) -> PictureForm:
    """Return what a request or an answer says of a picture; `auto` says nothing."""
    return PictureForm(
        *("" if (word := picture_form(said)) == "auto" else word for said in (quality, size))
    )


def split_key(key: str) -> tuple[str, str] | None:
    """Return the model and the form that a key of LiteLLM's map names; None of a plain key.

    Keys are `hd/1024-x-1792/dall-e-3`, without a provider in front.
    """
    found = _KEY.fullmatch(key)
    return None if found is None else (found[2], picture_form(found[1]))


def pixels_of(form: str) -> int:
    """Return the pixels of a form's size; 0 without one."""
    found = _SIZE.search(form)
    return 0 if found is None else int(found[1]) * int(found[2])


def priced_forms(terms: PriceTerms) -> Mapping[str, int]:
    """Return the price of a picture by form, of those that the price lists."""
    return {
        schedule.tier: schedule.picture_pusd
        for schedule in terms.schedules
        if schedule.picture_pusd is not None
    }


def reachable_forms(terms: PriceTerms, form: PictureForm) -> frozenset[str]:
    """Return the tiers that a picture of this form may be charged in, the standard one included.

    The one that it names, where the price lists it; else all that it does not contradict: a target
    chooses what is left open, and its answer tells.
    """
    listed = priced_forms(terms)
    if form.quality and form.size and (name := _listed_name(listed, form)) is not None:
        return frozenset((name,))
    return frozenset(name for name in listed if _fits(name, form)) | {STANDARD}


def charged_form(terms: PriceTerms, form: PictureForm) -> str:
    """Return the tier that a picture of this form is charged in: of several the dearest.

    Without a word of its quality it is the standard one of its size, where the price lists that.
    """
    listed = {STANDARD: terms.picture_pusd, **priced_forms(terms)}
    if (name := _listed_name(listed, form)) is not None:
        return name
    return max(sorted(reachable_forms(terms, form)), key=lambda tier: listed[tier])


def _listed_name(listed: Mapping[str, int], form: PictureForm) -> str | None:
    return next((name for name in _names_of(form) if name in listed), None)


def _names_of(form: PictureForm) -> Iterator[str]:
    """Yield names of exactly this form, the most particular first."""
    quality, size = form
    if quality and size:
        yield f"{quality}/{size}"
    if size and quality in STANDARD_QUALITIES:
        yield size
        yield f"standard/{size}"
    if quality:
        yield quality


def _fits(name: str, form: PictureForm) -> bool:
    """Return whether a listed form may be the one that was asked for without saying all of it."""
    listed = form_parts(name)
    return all(not said or not has or said == has for said, has in zip(form, listed, strict=True))


def form_parts(name: str) -> PictureForm:
    """Return quality and size of a form in the words of prices."""
    quality, _, size = name.rpartition("/")
    if quality:
        return PictureForm(quality, size)
    return PictureForm("", size) if size[:1].isdigit() else PictureForm(size, "")
