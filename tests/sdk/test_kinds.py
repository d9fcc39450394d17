"""Pictures, speech, moderations and Azure's addresses with OpenAI's SDK, against a real `serve`."""

APPLIED_LIMIT_S = 60


def test_no_check_broke(kinds_told: dict) -> None:
    assert {name: seen for name, seen in kinds_told.items() if "failed" in str(seen)} == {}


def test_pictures(kinds_told: dict) -> None:
    seen = kinds_told["pictures"]
    assert (seen["count"], seen["backend"]) == (2, "draws/dall-e-3")
    assert seen["cost"] == "0.264000031948"  # two of `hd/1024x1792`
    assert kinds_told["pictures_in_tokens"]["data"]
    assert kinds_told["pictures_in_tokens"]["usage"]["output_tokens"] == 272
    shown = ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    assert kinds_told["pictures_streamed"]["kinds"] == shown


def test_edits(kinds_told: dict) -> None:
    assert kinds_told["edits"] == {
        "count": 2, "read": 2 * 323,
        "kinds": ["image_edit.partial_image", "image_edit.completed"],
    }  # fmt: skip


def test_speech(kinds_told: dict) -> None:
    seen = kinds_told["speech"]
    assert (seen["media"], seen["bytes"] > 1000) == ("audio/wav", True)
    events = kinds_told["speech_in_events"]
    assert events["kinds"] == ["speech.audio.delta", "speech.audio.done"]
    assert events["usage"]["output_tokens"] > 0


def test_moderations_need_no_model(kinds_told: dict) -> None:
    assert kinds_told["moderation"] == {
        "flagged": [False, True], "model": "omni-moderation-latest",
    }  # fmt: skip


def test_azures_client_and_a_bare_address(kinds_told: dict) -> None:
    seen = kinds_told["azure"]
    assert (seen["tokens"], seen["pictures"]) == ([3, 3], 1)
    assert (seen["size"], seen["bytes"] > 100) == (64, True)
    assert kinds_told["azure_v1"]["models"]
    assert kinds_told["bare"] == {"tokens": 3}


def test_refusals_say_why(kinds_told: dict) -> None:
    assert kinds_told["refused"] == {
        "pictures": [429, "budget_exceeded"], "speech": [429, "budget_exceeded"],
        "stores": [404, "endpoint_not_served"], "jobs": [404, "endpoint_not_served"],
        "film": [404, "endpoint_not_served"], "variation": [404, "endpoint_not_served"],
    }  # fmt: skip


def test_each_has_its_row(gateway, kinds_told: dict) -> None:
    """Counted in its own unit, and priced."""
    query = (
        "SELECT kind, count(*) AS count, sum(pictures) AS pictures, sum(characters) AS characters,"
        " min(cost_pusd) AS least FROM attempts WHERE team_id = :team AND status = 'finished'"
        " AND settled_us IS NOT NULL GROUP BY kind"
    )

    def found() -> dict[str, dict]:
        return {row["kind"]: row for row in gateway.rows(query, team=kinds_told["team"])}

    rows = gateway.until(
        lambda: len(rows := found()) == 6 and rows["chat"]["count"] == 4 and rows, APPLIED_LIMIT_S
    )
    assert (rows["image_generation"]["count"], rows["image_generation"]["pictures"]) == (4, 5)
    assert (rows["image_edit"]["count"], rows["image_edit"]["pictures"]) == (3, 4)
    assert (rows["speech"]["count"], rows["speech"]["characters"]) == (3, 13 + 5)
    assert rows["moderation"]["least"] == 0
    assert rows["image_generation"]["least"] > 0 < rows["speech"]["least"]
