"""The model list's extension and LiteLLM's shape: exact, of the key's models, nothing made up."""

from decimal import Decimal
from types import SimpleNamespace

import pytest

from gateway.request.model_catalog import mode_of, prices_of
from ledger.prices.rates import PriceTerms, rates_from
from router.request_kinds import RequestKind


@pytest.fixture(scope="module")
def tokens(stack):
    return {
        "all": stack.key("catalog all").token,
        "api": stack.key("catalog api", models=("api",)).token,
        "inside": stack.key("catalog inside", residency="internal_only").token,
    }


def quote(**terms):
    listed = {"input": 150_000, "output": 600_000}
    price = SimpleNamespace(
        terms=PriceTerms(rates=rates_from(listed | terms.pop("rates", {})), **terms)
    )
    return SimpleNamespace(price=price, unread=(), limits=None)


def cards(stack, token: str) -> dict[str, dict]:
    found = stack.get("/v1/models", token).json()["data"]
    assert all(card["object"] == "model" for card in found)
    return {card["id"]: card["breakeven"] for card in found}


def test_a_card_tells_prices_context_and_who_serves_it(stack, tokens) -> None:
    found = cards(stack, tokens["all"])
    api = found["api"]
    assert api["served_by"] == ["api"]
    assert "text" in api["modalities"]["output"]
    assert Decimal(api["prices"]["input_usd_per_million"]) == Decimal("0.15")
    assert Decimal(api["prices"]["output_usd_per_million"]) == Decimal("0.6")
    assert api["context_tokens"] == 128_000
    assert api["max_output_tokens"] == 16_384
    own = found["own"]
    assert (own["served_by"], own["prices"], own["max_output_tokens"]) == (["own"], None, None)
    assert own["context_tokens"] > 0
    assert found["chat"]["served_by"] == ["api", "own"]
    assert "tools" in found["chat"]["features"]
    assert found["embed"]["features"] == []  # it makes no answer that could call one
    assert found["pair"]["prices"] is None  # two APIs at two prices: each target says its own
    assert len({str(line["prices"]) for line in found["pair"]["targets"]}) == 2
    assert found["alpha/*"]["targets"] == []
    one = stack.get("/v1/models/api", tokens["all"]).json()
    assert one["breakeven"] == api


def test_only_what_the_key_may_use_is_told(stack, tokens) -> None:
    assert set(cards(stack, tokens["api"])) == {"api"}
    inside = cards(stack, tokens["inside"])
    assert set(inside) == {"chat", "gpt-4o", "own", "embed"}
    assert inside["chat"]["served_by"] == ["own"]
    assert "alpha" not in str(inside)
    assert stack.get("/v1/models/chat", tokens["api"]).status_code == 404
    info = stack.get("/model/info", tokens["inside"]).json()["data"]
    assert {entry["model_info"]["litellm_provider"] for entry in info} <= {
        "pool:main",
        "pool:embed",
    }


@pytest.mark.parametrize("path", ["/model/info", "/v1/model/info"])
def test_litellms_shape(stack, tokens, path) -> None:
    (entry,) = stack.get(path, tokens["api"]).json()["data"]
    assert (entry["model_name"], entry["litellm_params"]) == ("api", {"model": "api"})
    info = entry["model_info"]
    assert info["input_cost_per_token"] == pytest.approx(1.5e-7)
    assert info["output_cost_per_token"] == pytest.approx(6e-7)
    assert (info["mode"], info["max_input_tokens"], info["max_output_tokens"]) == (
        "chat", 128_000, 16_384,
    )  # fmt: skip
    own = next(
        entry["model_info"]
        for entry in stack.get(path, tokens["all"]).json()["data"]
        if entry["model_name"] == "own"
    )
    assert (own["input_cost_per_token"], own["max_output_tokens"]) == (None, None)
    assert stack.client.get(stack.url + path).status_code == 401


def test_openais_client_reads_the_list_as_ever(stack, tokens) -> None:
    import openai  # noqa: PLC0415  (LiteLLM brings it; it would be a second of each collection)

    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key=tokens["api"]) as client:
        assert [model.id for model in client.models.list()] == ["api"]


def test_a_surcharge_is_in_the_price_and_a_price_by_units_charges_no_tokens() -> None:
    regional = prices_of(quote(uplift_ppm=100_000))
    assert Decimal(regional["input_usd_per_million"]) == Decimal("0.165")
    spoken = prices_of(quote(rates={"input": 0, "output": 0, "audio_input": 0, "audio_output": 0},
                             second_pusd=100_000_000))  # fmt: skip
    assert spoken == {"usd_per_second": "0.000100000000"}


FREE = {"input": 0, "output": 0, "audio_input": 0, "audio_output": 0}


@pytest.mark.parametrize(
    ("terms", "mode"),
    [
        ({"rates": FREE, "character_pusd": 1}, "audio_speech"),
        ({"rates": FREE, "picture_pusd": 1}, "image_generation"),
        ({"rates": FREE, "second_pusd": 1}, "audio_transcription"),
        ({"picture_pusd": 1}, "chat"),  # it makes pictures, too
        ({}, "chat"),
        ({"rates": FREE, "search_pusd": 1}, "chat"),
    ],
)
def test_a_price_by_units_says_what_a_model_of_many_kinds_does(terms, mode) -> None:
    assert mode_of(frozenset(RequestKind), quote(**terms)) == mode
    assert mode_of({RequestKind.EMBEDDING}, quote(**terms)) == "embedding"
    assert mode_of({RequestKind.TOKENIZE}, None) is None
