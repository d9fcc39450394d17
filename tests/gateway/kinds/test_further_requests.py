"""Scores, moderations and tokens over real sockets: relayed as they are, booked as counted."""

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
    ):
        found["providers"][name] = {
            "base_url": f"http://127.0.0.1:{ports['alpha']}/v1",
            "simulated": True, "prices_as": priced, "kinds": kinds,
        }  # fmt: skip
    found["models"] |= {
        "omni-moderation-latest": {"targets": ["judge/omni-moderation-latest"]},
        "pairs": {"targets": ["pool:pairs"], "compare_with": ["voyage/rerank-2.5"]},
        "pairs-api": {"targets": ["scorer/m"]},
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


def test_what_was_booked_adds_up(stack) -> None:
    stack.booked()
    with stack.reader.connect() as connection:
        assert verify(connection).findings == ()
