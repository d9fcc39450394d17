"""Forms of pictures: as prices and keys of the map write them, and which one is charged."""

import json
from decimal import Decimal

import pytest

from ledger.journals.records import TokenCounts
from ledger.prices.book import STANDARD, Price, PriceTerms, TierRates, cost_pusd, rates_from
from ledger.prices.bundled import bundled_map, bundled_seed, normalised
from ledger.prices.picture_forms import (
    PictureForm,
    charged_form,
    form_of,
    form_parts,
    picture_form,
    pixels_of,
    priced_forms,
    reachable_forms,
    split_key,
)

RATES = rates_from({"input": 0, "output": 0})
FORMS = {"1024x1024": 4, "1024x1792": 8, "hd/1024x1024": 8, "hd/1024x1792": 12}
TERMS = PriceTerms(
    RATES, tuple(TierRates(form, 0, RATES, pusd) for form, pusd in FORMS.items()), picture_pusd=12
)


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("hd/1024-x-1792/dall-e-3", ("dall-e-3", "hd/1024x1792")),
        ("1024-x-1024/a/b", ("a/b", "1024x1024")),
        ("dall-e-3", None),
        ("a/dall-e-3", None),
    ],
)
def test_keys_of_the_map_name_a_model_and_a_form(key: str, found) -> None:
    assert split_key(key) == found


def test_forms_are_written_one_way() -> None:
    assert picture_form(" HD/1024 x 1792".replace(" ", "")) == "hd/1024x1792"
    assert form_of("auto", "AUTO") == PictureForm("", "")
    assert form_parts("hd/1024x1792") == PictureForm("hd", "1024x1792")
    assert form_parts("4k") == PictureForm("", "4k")
    assert form_parts("1024x1024") == PictureForm("", "1024x1024")
    assert (pixels_of("hd/1024x1792"), pixels_of("hd")) == (1024 * 1792, 0)


@pytest.mark.parametrize(
    ("form", "charged", "reached"),
    [
        (("hd", "1024x1792"), "hd/1024x1792", {"hd/1024x1792"}),
        (("standard", "1024x1792"), "1024x1792", {"1024x1792"}),
        (("", "1024x1024"), "1024x1024", {"1024x1024", "hd/1024x1024", STANDARD}),
        (("", ""), "hd/1024x1792", {*FORMS, STANDARD}),
        (("hd", ""), "hd/1024x1792", {*FORMS, STANDARD}),
        (("", "512x512"), STANDARD, {STANDARD}),
        (("hd", "512x512"), STANDARD, {STANDARD}),
    ],
)
def test_the_form_that_was_asked_for_is_charged_else_the_dearest(form, charged, reached) -> None:
    asked = PictureForm(*form)
    assert reachable_forms(TERMS, asked) == reached
    found = charged_form(TERMS, asked)
    price = Price(1, "a/b", "t", 0, TERMS)
    assert cost_pusd(TokenCounts(pictures=1), price, tier=found) == cost_pusd(
        TokenCounts(pictures=1), price, tier=charged
    )


def test_prices_of_pictures_and_speech_are_those_of_litellms_map() -> None:
    """A picture of each form, a character, and a token of each kind that a row states."""
    drafts = {draft.name: draft.terms for draft in bundled_seed().drafts}
    rows = json.loads(bundled_map().text, parse_float=Decimal)
    checked = dict.fromkeys(("form", "picture", "character", "image token", "sound token"), 0)
    for key, row in rows.items():
        provider = row.get("litellm_provider")
        if row.get("mode") not in ("image_generation", "audio_speech"):
            continue
        split = split_key(key.removeprefix(f"{provider}/"))
        name = normalised(split[0] if split else key, provider)
        if name not in drafts:
            continue  # refused: no price of a picture
        terms = drafts[name]
        stated = row.get("output_cost_per_image") or row.get("input_cost_per_image")
        if split and stated:
            assert abs(priced_forms(terms)[split[1]] - stated * 10**12) <= 1, key
            checked["form"] += 1
        elif row.get("output_cost_per_image") and not priced_forms(terms):
            assert terms.picture_pusd >= round(row["output_cost_per_image"] * 10**12), key
            checked["picture"] += 1
        for field, kind, word in (
            ("output_cost_per_image_token", "image_output", "image token"),
            ("output_cost_per_audio_token", "audio_output", "sound token"),
        ):
            if row.get(field):
                assert getattr(terms.rates, kind) == round(row[field] * 10**12), key
                checked[word] += 1
        if row.get("input_cost_per_character"):
            assert terms.character_pusd == round(row["input_cost_per_character"] * 10**12), key
            checked["character"] += 1
    assert all(checked.values()), checked
    assert checked["form"] > 100
