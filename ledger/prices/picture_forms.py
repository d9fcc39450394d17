"""Forms of generated pictures: quality and size, by which a price may differ.

A form is `QUALITY/SIZE`, or one of both: `hd/1024x1792`, `1024x1024`, `4k`. A price lists forms as
tiers, so the tier of an attempt's row shows which form was charged.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ledger.prices.rates import STANDARD, PriceTerms

STANDARD_QUALITIES: Final = frozenset(("", "auto", "default", "standard"))
_SIZE: Final = re.compile(r"(\d{2,5})-?x-?(\d{2,5})", re.IGNORECASE)
_KEY: Final = re.compile(r"((?:[a-z]+/)?\d{2,5}-x-\d{2,5})/(.+)")


class PictureForm(NamedTuple):
    """Quality and size of a picture, as requested or reported; "" if unknown."""

    quality: str = ""
    size: str = ""


def picture_form(text: str) -> str:
    """Return a form as prices write it: in lower case, sizes as `1024x1024`."""
    return _SIZE.sub(r"\1x\2", text.strip().lower()).strip("/")


def form_of(quality: str, size: str) -> PictureForm:
    """Return the form that a request or an answer states; `auto` counts as unknown."""
    return PictureForm(
        *("" if (word := picture_form(said)) == "auto" else word for said in (quality, size))
    )


def split_key(key: str) -> tuple[str, str] | None:
    """Return model and form in a key of LiteLLM's map, `None` for a key without a form.

    Such keys are `hd/1024-x-1792/dall-e-3`, without a provider in front.
    """
    found = _KEY.fullmatch(key)
    return None if found is None else (found[2], picture_form(found[1]))


def pixels_of(form: str) -> int:
    """Return the number of pixels of a form's size, 0 if the form has no size."""
    found = _SIZE.search(form)
    return 0 if found is None else int(found[1]) * int(found[2])


def priced_forms(terms: PriceTerms) -> Mapping[str, int]:
    """Return the price of a picture in pico-USD, by form, for the forms that the price lists."""
    return {
        schedule.tier: schedule.picture_pusd
        for schedule in terms.schedules
        if schedule.picture_pusd is not None
    }


def reachable_forms(terms: PriceTerms, form: PictureForm) -> frozenset[str]:
    """Return the tiers that a picture of this form may be charged in.

    A complete form that the price lists has exactly one. Otherwise the result is every listed form
    that fits, and the standard tier: the target chooses the rest, and its answer states the choice.
    """
    listed = priced_forms(terms)
    if form.quality and form.size and (name := _listed_name(listed, form)) is not None:
        return frozenset((name,))
    return frozenset(name for name in listed if _fits(name, form)) | {STANDARD}


def charged_form(terms: PriceTerms, form: PictureForm) -> str:
    """Return the tier that a picture of this form is charged in.

    If several tiers are possible, the most expensive one counts. A form without a quality has the
    standard quality, if the price lists its size.
    """
    listed = {STANDARD: terms.picture_pusd, **priced_forms(terms)}
    if (name := _listed_name(listed, form)) is not None:
        return name
    return max(sorted(reachable_forms(terms, form)), key=lambda tier: listed[tier])


def _listed_name(listed: Mapping[str, int], form: PictureForm) -> str | None:
    return next((name for name in _names_of(form) if name in listed), None)


def _names_of(form: PictureForm) -> Iterator[str]:
    """Yield the names of exactly this form, most specific first."""
    quality, size = form
    if quality and size:
        yield f"{quality}/{size}"
    if size and quality in STANDARD_QUALITIES:
        yield size
        yield f"standard/{size}"
    if quality:
        yield quality


def _fits(name: str, form: PictureForm) -> bool:
    """Return whether a listed form does not contradict a partly known form."""
    listed = form_parts(name)
    return all(not said or not has or said == has for said, has in zip(form, listed, strict=True))


def form_parts(name: str) -> PictureForm:
    """Return quality and size of a form that a price lists."""
    quality, _, size = name.rpartition("/")
    if quality:
        return PictureForm(quality, size)
    return PictureForm("", size) if size[:1].isdigit() else PictureForm(size, "")
