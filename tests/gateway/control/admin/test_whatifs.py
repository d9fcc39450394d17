"""What-ifs over HTTP: who may ask, what comes out, one at a time; people, known by name."""

import httpx
import pytest

PATH = "/v1/organization/policies"
SIMULATE = PATH + "/simulate"
ASKED = 12
LOOSE = "policies: [{name: loose, slo: {ttft_ms: 9000, tpot_ms: 900}}]"
API = "policies: [{name: out, candidates: [alpha/m], match: {models: [chat]}}, {name: rest}]"


@pytest.fixture(scope="module")
def token(stack) -> str:
    return stack.key("what-ifs", scopes=("usage:all",)).token


@pytest.fixture(scope="module", autouse=True)
def past(stack) -> None:
    for _ in range(ASKED):
        stack.settled(stack.chat("chat", max_tokens=8))


@pytest.fixture
def ended(stack, token, patiently):
    """What came of one, once it has ended."""

    def wait(job: str) -> dict:
        address = f"{SIMULATE}?job={job}"

        def look() -> dict | None:
            found = stack.get(address, token).json()
            return found if found["state"] != "running" else None

        return patiently(look, 60)

    return wait


def test_two_sets_are_played_and_compared_and_no_other_meanwhile(stack, token, ended) -> None:
    asked = {"policies": API, "name": "out", "against": "in-force"}
    begun = stack.post(SIMULATE, asked, token)
    assert begun.status_code == 200, begun.text
    second = stack.post(SIMULATE, asked, token)
    assert (second.status_code, second.json()["error"]["code"]) == (409, "what_if_busy")
    found = ended(begun.json()["job"])
    assert (found["state"], found["fault"]) == ("done", None)
    result = found["result"]
    total = result["traffic"]["requests"]
    assert total >= ASKED, "other tests of the package ask, too"
    assert found["progress"]["done"] == found["progress"]["of"] == 2 * total
    assert [each_result["policy"] for each_result in result["results"]] == ["out", "in-force"]
    assert result["traffic"]["source"] == "ledger, last-24-hours"
    at_api = [
        sum(target["requests"] for target in each["targets"] if target["target"] == "alpha/m")
        for each in result["results"]
    ]
    assert at_api[0] - at_api[1] == result["disagreement"]["moved"] >= ASKED
    spills = [each["spill"]["share_by_count"] for each in result["results"]]
    assert spills[0] > spills[1]
    newest = stack.get(SIMULATE, token).json()
    assert newest["job"] == found["job"]
    assert newest["by"].startswith("key:")


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({"policies": "policies: [{name: x, slo: {ttft: 3}}]"}, 400, "slo.ttft"),
        ({"against": "policies: 3"}, 400, "is invalid: 1 error"),
        ({"against": "in-force", "against_name": "the set"}, 400, "have the same name"),
        ({"most": 0}, 400, "most"),
        ({"ledger": 3}, 400, "ledger"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(stack, token, more, status, words) -> None:
    answer = stack.post(SIMULATE, {"policies": LOOSE, **more}, token)
    assert answer.status_code == status
    assert words in answer.text


def test_one_that_nobody_asked_for_is_not_found(stack, token) -> None:
    for job in ("0" * 32, "..", "%2e%2e", "a/b"):
        answer = stack.get(f"{SIMULATE}?job={job}", token)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "what_if_not_found")


def test_one_is_cancelled_and_the_next_may_be_asked_for(stack, token, ended, patiently) -> None:
    def begun() -> str | None:
        answer = stack.post(SIMULATE, {"policies": LOOSE}, token)
        assert answer.status_code in (200, 409), answer.text
        return answer.json().get("job")

    def cancelled(query: str) -> httpx.Response:
        return stack.client.delete(f"{stack.url}{SIMULATE}{query}", headers=stack.headers(token))

    job = patiently(begun)
    answer = cancelled(f"?job={job}")
    assert answer.status_code == 200, answer.text
    assert ended(job)["state"] in ("cancelled", "done"), "it may have been faster"
    assert cancelled(f"?job={job}").json()["state"] != "running"
    assert ended(patiently(begun))["state"] == "done"
    unknown = cancelled(f"?job={'0' * 32}")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "what_if_not_found")
    assert cancelled("").status_code == 400


# ---------------------------------------------------------------- people

ADA, FAY, JOE, EVE = (f"{name}@example.com" for name in ("ada", "fay", "joe", "eve"))
CALM = {"policies": "policies: [{name: calmer, slo: {ttft_ms: 5000}}]"}


def test_the_books_name_the_person_and_not_who_asked_for_them(asked_by, patiently) -> None:
    assert asked_by(None, PATH).status_code == 403, "where people have names, each needs one"
    put = asked_by(ADA, PATH + "/apply", CALM).json()
    assert put["by"] == ADA
    assert asked_by(ADA, PATH + "/rollback", {"to_file": True}).json()["by"] == ADA
    page = asked_by(ADA, PATH + "/history?limit=2").json()["data"]
    assert [item["by"] for item in page] == [ADA, ADA]

    def entered() -> list[dict]:
        found = asked_by(FAY, "/v1/organization/changes?limit=100").json()["data"]
        return [
            finding
            for finding in found
            if finding["register"] == "policy_sets" and finding["actor"] == ADA
        ]

    assert patiently(lambda: len(entered()) >= 2), "the writer enters them by and by"


@pytest.mark.parametrize("name", [FAY, JOE])
def test_who_may_look_may_simulate_and_change_nothing(asked_by, patiently, name) -> None:
    before = asked_by(ADA, PATH).json()["set"]
    for path, body in (("/apply", CALM), ("/rollback", {"to_file": True})):
        answer = asked_by(name, PATH + path, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert asked_by(ADA, PATH).json()["set"] == before
    assert asked_by(name, PATH + "/check", CALM).json()["valid"]

    def begun() -> str | None:
        """Another one may still be under way."""
        answer = asked_by(name, SIMULATE, {"policies": LOOSE, "most": 1})
        assert answer.status_code in (200, 409), answer.text
        return answer.json().get("job")

    assert asked_by(name, f"{SIMULATE}?job={patiently(begun, 60)}").json()["by"] == name


def test_a_viewer_of_one_team_and_a_stranger_get_nothing(asked_by) -> None:
    for name in (EVE, "joe@elsewhere.com"):
        for path in (PATH, PATH + "/history", SIMULATE, "/v1/organization/costs", "/v1/models"):
            assert asked_by(name, path).status_code == 403


@pytest.mark.parametrize(
    "spoilt", [{"method": "GET"}, {"target": PATH + "/check"}, {"vouched": b"{}"}]
)
def test_a_word_is_of_no_use_for_anything_else(asked_by, spoilt) -> None:
    """The same person, the same second, the right key: for another request."""
    answer = asked_by(ADA, PATH + "/apply", CALM, **spoilt)
    assert answer.status_code == 401
    assert asked_by(ADA, PATH + "/check", CALM).status_code == 200, "the control"


def test_a_person_asks_no_model(stack, asked_by) -> None:
    assert asked_by(ADA, "/v1/models").status_code == 403
    body = {"model": "chat", "messages": []}
    assert asked_by(ADA, "/v1/chat/completions", body).status_code == 401
