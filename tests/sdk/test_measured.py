"""Sound through OpenAI's SDKs and rankings through Cohere's, unchanged, against one gateway."""

from decimal import Decimal

import pytest

SECONDS_PUSD = 2 * 100_000_000  # two seconds at whisper-1's price
CONFIG = {
    "models": {
        "chat": {"targets": ["talks/chat"]},
        "hear": {"targets": ["hears/whisper-1"]},
        "hear-4o": {"targets": ["hears/gpt-4o-transcribe"]},
        "rank": {"targets": ["ranks/rerank"]},
    },
    "providers": {
        "talks": {"simulated": True, "start": True, "prices_as": "openai/gpt-4o-mini"},
        "hears": {
            "simulated": True, "start": True, "prices_as": "openai/whisper-1",
            "kinds": ["transcription"],
        },
        "ranks": {
            "simulated": True, "start": True, "prices_as": "voyage/rerank-2.5",
            "kinds": ["rerank"],
        },
    },
    "policies": [{"name": "all"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(serve):
    found = serve(CONFIG)
    found.token = found.key(team="search")
    return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.part(name))
        for name in ("openai-2", "openai-3", "openai-node")
    ],
)
def heard(request, gateway, see, tmp_path_factory) -> dict:
    """What one of OpenAI's SDKs saw."""
    environ = {"OPENAI_BASE_URL": gateway.base_url, "OPENAI_API_KEY": gateway.token}
    return see(request.param, "sound_checks", tmp_path_factory.mktemp("client"), environ)


@pytest.fixture(scope="module", params=[pytest.param(None, marks=pytest.mark.part("cohere"))])
def ranked(gateway, see, tmp_path_factory) -> dict:
    """What Cohere's SDK saw."""
    environ = {"BASE_URL": gateway.base_url.removesuffix("/v1"), "API_KEY": gateway.token}
    return see("cohere", "rank_checks", tmp_path_factory.mktemp("client"), environ)


def test_every_shape_of_a_transcript(heard: dict) -> None:
    assert [seen for seen in heard.values() if "failed" in str(seen)] == []
    text = heard["transcript"]["text"]
    assert text.startswith("[simulated]:")
    assert heard["transcript"]["usage"] == {"type": "duration", "seconds": 2}
    assert heard["verbose"] == {"text": text, "duration": 2.0}
    assert heard["plain"]["text"].strip() == text
    assert heard["plain"]["srt"].startswith("1\n00:00:00,000 -->")
    assert heard["plain"]["vtt"].startswith("WEBVTT")
    assert heard["translation"]["text"] == text


def test_a_stream_of_a_transcript(heard: dict) -> None:
    seen = heard["stream"]
    assert seen["kinds"] == ["transcript.text.delta", "transcript.text.done"]
    assert seen["text"] == seen["done"]


def test_a_model_that_cannot_hear_is_named(heard: dict) -> None:
    seen = heard["not_heard"]
    assert (seen["status"], seen["param"]) == (400, "model")
    assert "does not serve" in seen["message"] or "serves this path" in seen["message"]


def test_two_seconds_are_paid_for(gateway, heard: dict) -> None:
    seen = heard["transcript"]
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    (row,) = gateway.until(lambda: gateway.rows(query, id=seen["request_id"]), 20)
    assert (row["kind"], row["audio_ms"], row["cost_pusd"]) == (
        "transcription", 2000, SECONDS_PUSD,
    )  # fmt: skip
    assert Decimal(seen["cost"]) == Decimal(SECONDS_PUSD).scaleb(-12)


def test_rankings_by_both_versions_of_coheres_api(ranked: dict) -> None:
    assert ranked["second"]["indexes"] == ranked["first"]["indexes"] == [2, 0]
    assert ranked["second"]["scores"] == [1.0, 0.5]


def test_a_model_that_cannot_rank_is_named(ranked: dict) -> None:
    assert ranked["not_ranked"]["status"] == 400
    assert ranked["not_ranked"]["error"]["param"] == "model"
