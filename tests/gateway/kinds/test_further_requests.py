"""Scores, moderations and tokens over real sockets: relayed as they are, booked as counted."""

import json

import httpx
import pytest

from ledger.verify.checks import verify

GPU = {"type": "H200", "usd_per_hour": "3.50", "source": "test"}


def with_kinds(found: dict, ports: dict[str, int]) -> None:
    """A pool that scores and a provider of each kind, beside those that chat."""
    engine = found["pools"]["main"]["engine"]
    found["pools"]["pairs"] = {"engine": {**engine, "kinds": ["rerank", "score"]}, "gpu": GPU}
    for name, kinds, priced in (
        ("judge", ["moderation"], "openai/omni-moderation-latest"),
        ("scorer", ["score"], "voyage/rerank-2.5"),
        ("tts", ["speech"], "openai/tts-1"),
        ("mini", ["speech"], "openai/gpt-4o-mini-tts"),
        ("flux", ["image_generation"], "azure/dall-e-3"),
        ("gpt", ["image_generation"], "openai/gpt-image-1"),
    ):
        found["providers"][name] = {
            "base_url": f"http://127.0.0.1:{ports['alpha']}/v1",
            "simulated": True, "prices_as": priced, "kinds": kinds,
        }  # fmt: skip
    found["models"] |= {
        "omni-moderation-latest": {"targets": ["judge/omni-moderation-latest"]},
        "pairs": {"targets": ["pool:pairs"], "compare_with": ["voyage/rerank-2.5"]},
        "pairs-api": {"targets": ["scorer/m"]},
        "tts-1": {"targets": ["tts/tts-1"], "compare_with": ["openai/tts-1-hd"]},
        "mini-tts": {"targets": ["mini/gpt-4o-mini-tts"]},
        "dall-e-3": {"targets": ["flux/dall-e-3"], "compare_with": ["azure/dall-e-3"]},
        "gpt-image-1": {"targets": ["gpt/gpt-image-1"]},
    }


@pytest.fixture(scope="module")
def stack(running, patiently, tmp_path_factory):
    budgets = [{"scope": "team:poor", "usd": "0.000001", "hard": True}]
    folder = tmp_path_factory.mktemp("host")
    with running(folder, adjust=with_kinds, budgets=budgets) as found:
        rows = [row for row, seat in enumerate(found.runtime.engines) if seat.pool == "pairs"]
        patiently(lambda: all(found.board.published(row)[10] for row in rows), 60)
        yield found


def test_a_moderation_is_free_and_recorded(stack) -> None:
    answer = stack.post("/v1/moderations", {"input": ["peace", "violence"]})
    assert answer.status_code == 200, answer.text
    assert [result["flagged"] for result in answer.json()["results"]] == [False, True]
    (row,) = stack.settled(answer)
    assert (row["kind"], row["status"], row["cost_pusd"]) == ("moderation", "finished", 0)
    assert row["basis"] == "estimated"  # nothing tells tokens, and they cost nothing
    assert answer.headers["x-breakeven-cost-usd"] == "0.000000000000"
    poor = stack.key("poor", team="poor").token
    assert stack.post("/v1/moderations", {"input": "x"}, poor).status_code == 200  # no money asked


@pytest.mark.parametrize(("model", "own"), [("pairs", True), ("pairs-api", False)])
@pytest.mark.parametrize("path", ["/v1/score", "/score"])
def test_scores_are_relayed_and_booked(stack, model: str, own: bool, path: str) -> None:
    body = {"model": model, "text_1": "the engine", "text_2": ["the engine runs", "a ledger"]}
    answer = stack.post(path, body)
    assert answer.status_code == 200, answer.text
    first, second = (each["score"] for each in answer.json()["data"])
    assert first > second
    (row,) = stack.settled(answer)
    read = answer.json()["usage"]["prompt_tokens"]
    assert (row["kind"], row["basis"], row["input_tokens"]) == ("score", "reported", read)
    assert bool(row["engine_us"]) == own
    assert row["cost_pusd"] > 0


def test_a_hard_budget_holds_for_scores(stack) -> None:
    poor = stack.key("poor", team="poor").token
    body = {"model": "pairs-api", "text_1": "x " * 500, "text_2": ["y " * 500] * 40}
    refused = stack.post("/v1/score", body, poor)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_exceeded")


def test_a_text_becomes_tokens_and_a_text_again(stack) -> None:
    """Work of a processor: a row without tokens, engine time or cost."""
    text = "Grüße, and a ledger"
    answer = stack.post("/tokenize", {"model": "own", "prompt": text})
    assert answer.status_code == 200, answer.text
    tokens = answer.json()["tokens"]
    assert answer.json()["count"] == len(tokens) > 2
    again = stack.post("/detokenize", {"model": "own", "tokens": tokens})
    assert again.json() == {"prompt": text}
    for each in (answer, again):
        (row,) = stack.settled(each)
        assert (row["kind"], row["status"]) == ("tokenize", "finished")
        assert (row["input_tokens"], row["engine_us"], row["cost_pusd"]) == (0, 0, 0)


def test_an_api_is_asked_for_no_tokens(stack) -> None:
    refused = stack.post("/tokenize", {"model": "api", "prompt": "x"})
    assert refused.status_code in (400, 404)
    assert refused.json()["error"]["message"].startswith("No target of `api`")


SPOKEN = {"model": "tts-1", "input": "Good morning, ledger!", "voice": "alloy"}
CHARACTER_PUSD = 15_000_000


def test_speech_flows_and_is_charged_by_the_character(stack) -> None:
    answer = stack.post("/v1/audio/speech", {**SPOKEN, "response_format": "wav"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
    assert len(answer.content) > 1000
    (row,) = stack.settled(answer)
    assert (row["kind"], row["characters"]) == ("speech", len(SPOKEN["input"]))
    assert row["cost_pusd"] == len(SPOKEN["input"]) * CHARACTER_PUSD
    assert row["compared_pusd"] == 2 * row["cost_pusd"]


def test_speech_in_events_is_charged_by_what_they_count(stack) -> None:
    body = {**SPOKEN, "model": "mini-tts", "stream_format": "sse"}
    answer = stack.post("/v1/audio/speech", body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
    usage = events[-1]["usage"]
    (row,) = stack.settled(answer)
    assert (row["basis"], row["output_tokens"]) == ("reported", usage["output_tokens"])
    assert row["audio_output_tokens"] == usage["output_tokens"]
    assert row["cost_pusd"] == usage["input_tokens"] * 600_000 + usage["output_tokens"] * 12_000_000


def test_speech_without_usage_is_estimated_from_its_bytes(stack) -> None:
    answer = stack.post("/v1/audio/speech", {**SPOKEN, "model": "mini-tts"})
    (row,) = stack.settled(answer)
    assert (row["basis"], row["flag"]) == ("estimated", None)
    assert row["audio_output_tokens"] == -(-len(answer.content) * 25 // 8_000)


def test_a_broken_file_of_sound_stays_without_its_end(stack) -> None:
    """What was passed on is no answer; its row is booked at its bound."""
    stack.fault("alpha", fault="cut", after_tokens=2, times=3)
    body = {**SPOKEN, "input": "word " * 200}
    with pytest.raises(httpx.HTTPError):
        stack.post("/v1/audio/speech", body)
    stack.forgive("alpha")
    stack.booked()
    row = stack.rows("kind = 'speech'")[-1]
    assert (row["status"], row["characters"]) == ("upstream_error", 1000)


def test_pictures_are_charged_by_their_form(stack) -> None:
    body = {"model": "dall-e-3", "prompt": "a cat", "size": "1024x1792", "quality": "hd", "n": 2}
    answer = stack.post("/v1/images/generations", body)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["data"]) == 2
    (row,) = stack.settled(answer)
    assert (row["kind"], row["pictures"], row["tier"]) == ("image_generation", 2, "hd/1024x1792")
    assert row["cost_pusd"] == 2 * 132_000_015_974  # the pixels' price of LiteLLM's map
    plain = stack.post("/v1/images/generations", {**body, "quality": "standard", "n": 1})
    (row,) = stack.settled(plain)
    assert (row["cost_pusd"], row["compared_pusd"]) == (88_000_010_650, 88_000_010_650)


@pytest.mark.parametrize("stream", [False, True])
def test_pictures_are_charged_by_their_tokens(stack, stream: bool) -> None:
    body = {"model": "gpt-image-1", "prompt": "a cat", "quality": "medium", "n": 1}
    if stream:
        body |= {"stream": True, "partial_images": 2}
    answer = stack.post("/v1/images/generations", body)
    assert answer.status_code == 200, answer.text
    if stream:
        assert [line for line in answer.text.splitlines() if line.startswith("event: ")] == [
            "event: image_generation.partial_image", "event: image_generation.partial_image",
            "event: image_generation.completed",
        ]  # fmt: skip
    (row,) = stack.settled(answer)
    made = 1056 + 200 * stream
    assert (row["basis"], row["pictures"], row["image_output_tokens"]) == ("reported", 1, made)
    assert row["cost_pusd"] == row["input_tokens"] * 5_000_000 + made * 40_000_000
    assert row["tier"] == "medium/1024x1024"


def test_a_stream_that_its_target_does_not_know_is_written_here(stack) -> None:
    body = {"model": "dall-e-3", "prompt": "a cat", "n": 2, "stream": True}
    answer = stack.post("/v1/images/generations", body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
    assert [event["type"] for event in events] == ["image_generation.completed"] * 2
    assert all(event["url"].startswith("https://") for event in events)
    (row,) = stack.settled(answer)
    assert (row["status"], row["pictures"]) == ("finished", 2)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/speech", SPOKEN),
        ("/v1/audio/speech", {**SPOKEN, "model": "mini-tts"}),
        ("/v1/images/generations", {"model": "gpt-image-1", "prompt": "a cat"}),
        ("/v1/images/generations", {"model": "dall-e-3", "prompt": "a cat"}),
    ],
)
def test_a_hard_budget_holds(stack, path: str, body: dict) -> None:
    poor = stack.key("poor", team="poor").token
    refused = stack.post(path, body, poor)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_exceeded")


def test_what_the_target_refuses_is_passed_on(stack) -> None:
    refused = stack.post("/v1/audio/speech", {**SPOKEN, "stream_format": "sse"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "stream_format")


def test_what_was_booked_adds_up(stack) -> None:
    stack.booked()
    with stack.reader.connect() as connection:
        assert verify(connection).findings == ()
