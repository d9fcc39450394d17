"""Equal requests of one tenant are answered from memory, over real sockets and into real books."""

import json
import time

import httpx
import pytest
from sqlalchemy import text

from gateway.control.decisions.recorded import read_recorded_decision
from gateway.whatif.ledger_traffic import read_traffic
from ledger.identity.keychanges import ChangeAuthor, revoke
from ledger.prices.stored import load_price_book
from ledger.spans import EVER

ON = {"enabled": True, "max_age_s": 600}
RATES = [{"scope": "key:*", "requests_per_minute": 6}]
CANARY = [
    {"name": "half", "match": {"models": ["pair"]}, "canary": {"target": "beta/m", "percent": 100}},
    {"name": "read", "match": {"models": ["two"]}, "content": {"card": "mask"}},
    {"name": "plain"},
]
WORDS = "x-breakeven-cache"
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def with_models(found: dict, _ports: dict) -> None:
    found["models"]["two"] = {"targets": ["alpha/m", "beta/m"]}
    found["models"]["staged"] = {"targets": ["late/m"], "then": [{"targets": ["beta/m"]}]}


@pytest.fixture(scope="module")
def stack(tmp_path_factory, running):
    changes = {"response_cache": ON, "policies": CANARY, "adjust": with_models}
    with running(tmp_path_factory.mktemp("cache"), **changes) as stack:
        yield stack


def ask(stack, content: str, model: str = "api", **given) -> httpx.Response:
    """`given`: members of the body; `token`, `sent`."""
    token, sent, path = given.pop("token", None), given.pop("sent", {}), "/v1/chat/completions"
    messages = [{"role": "user", "content": content}]
    body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 3, **given}
    return stack.post(path, body, token, **sent)


def hits(stack, answer: httpx.Response) -> list[dict]:
    def look() -> list[dict]:
        with stack.reader.connect() as connection:
            query = text("SELECT * FROM cache_hits WHERE request_id = :name")
            name = answer.headers["x-request-id"]
            return [dict(row) for row in connection.execute(query, {"name": name}).mappings()]

    stack.booked()
    return look()


@pytest.mark.parametrize("stream", [False, True])
def test_an_equal_request_gets_the_first_ones_answer_and_a_row_of_its_own(stack, stream) -> None:
    first = ask(stack, f"once {stream}", stream=stream)
    asked = len(stack.entries("alpha"))
    second = ask(stack, f"once {stream}", stream=stream)
    assert [each.headers[WORDS] for each in (first, second)] == ["miss", "hit"]
    assert second.content == first.content
    assert second.headers["content-type"] == first.headers["content-type"]
    assert second.headers["age"] == "0"
    assert second.headers["x-request-id"] != first.headers["x-request-id"]
    assert second.headers["x-breakeven-cost-usd"] == "0.000000000000"
    assert second.headers["x-breakeven-backend"] == "alpha/m"
    assert len(stack.entries("alpha")) == asked
    (row,) = hits(stack, second)
    (paid,) = stack.settled(first)
    assert row["avoided_pusd"] == paid["cost_pusd"] > 0
    assert row["answered_by"] == first.headers["x-request-id"]
    assert (row["model"], row["backend"], row["team_id"]) == ("api", "api", "search")
    assert row["output_tokens"] == paid["output_tokens"]
    assert not stack.rows("request_id = :name", name=second.headers["x-request-id"])


def test_a_stored_answer_of_the_cache_tells_what_it_was_booked_at(stack) -> None:
    """Red before: a stream tells no usage of its own, and the stored one was null."""
    said = [ask(stack, "stored", stream=True, store=True) for _ in range(2)]
    assert [answer.headers.get(WORDS) for answer in said] == ["miss", "hit"]
    paths = [
        f"/v1/chat/completions/{json.loads(answer.text.split('data: ')[1])['id']}"
        for answer in said
    ]
    found = [stack.get(path).json() for path in paths]
    assert found[0]["id"] != found[1]["id"]
    used = [{name: each["usage"][name] for name in COUNTS} for each in found]
    assert used[0] == used[1]
    assert used[0]["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("words", "second"), [("a clean one", "hit"), ("card 4111 1111 1111 1111", None)]
)
def test_what_was_inspected_and_clean_is_answered_and_what_was_masked_is_not(
    stack, words, second
) -> None:
    asked = [ask(stack, words, "two") for _ in range(2)]
    assert [each.status_code for each in asked] == [200, 200]
    assert asked[1].headers.get(WORDS) == second


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 0.5},
        {"temperature": None},
        {"n": 2},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
    ],
)
def test_what_does_not_follow_from_its_bytes_is_made_anew(stack, given) -> None:
    for _ in range(2):
        answer = ask(stack, f"anew {json.dumps(given)}", **given)
        assert answer.status_code == 200
        assert WORDS not in answer.headers


@pytest.mark.parametrize("given", [{"temperature": 1, "seed": 7}, {"temperature": 0.0}])
def test_a_seed_or_temperature_zero_is_deterministic(stack, given) -> None:
    said = [ask(stack, f"same {given}", **given).headers[WORDS] for _ in range(2)]
    assert said == ["miss", "hit"]


def test_a_client_may_say_that_any_answer_will_do(stack) -> None:
    sent = {WORDS: "any"}
    said = [ask(stack, "any", temperature=1, sent=sent).headers[WORDS] for _ in range(2)]
    assert said == ["miss", "hit"]


def test_embeddings_and_other_dialects_are_answered_in_their_own_form(stack) -> None:
    body = {"model": "embed", "input": "words"}
    first, second = (stack.post("/v1/embeddings", body) for _ in range(2))
    assert second.headers[WORDS] == "hit"
    assert second.content == first.content
    assert hits(stack, second)[0]["backend"] == "own"
    for stream in (False, True):
        body = {
            "model": "api", "max_tokens": 3, "temperature": 0, "stream": stream,
            "messages": [{"role": "user", "content": "in another dialect"}],
        }  # fmt: skip
        first, second = (stack.post("/v1/messages", body) for _ in range(2))
        assert second.headers[WORDS] == "hit"
        assert second.content == first.content
        assert b"message" in second.content
    body = {"model": "api", "input": "what goes on has no equal", "temperature": 0}
    answers = [stack.post("/v1/responses", body) for _ in range(2)]
    assert answers[0].json()["id"] != answers[1].json()["id"]
    assert WORDS not in answers[1].headers


@pytest.mark.parametrize(
    ("control", "said", "then"),
    [
        ("no-cache", "bypass", "hit"),
        ("no-store", "bypass", "hit"),
        ("max-age=0", "miss", "hit"),
        ("max-age=60", "hit", "hit"),
    ],
)
def test_clients_pass_it_by(stack, control, said, then) -> None:
    first = ask(stack, control)
    time.sleep(0.01)  # older than nothing
    answer = ask(stack, control, sent={"cache-control": control})
    assert answer.headers[WORDS] == said
    later = ask(stack, control)
    assert later.headers[WORDS] == then
    renewed = control in ("no-cache", "max-age=0")
    (row,) = hits(stack, later)
    expected = answer if renewed else first
    assert row["answered_by"] == expected.headers["x-request-id"]


def test_nothing_is_found_of_what_was_asked_with_no_store(stack) -> None:
    ask(stack, "never kept", sent={"cache-control": "no-store"})
    assert ask(stack, "never kept").headers[WORDS] == "miss"


def counted(stack, result: str) -> float:
    name = f'breakeven_response_cache_total{{result="{result}"}} '
    line = next(line for line in stack.get("/metrics").text.splitlines() if line.startswith(name))
    return float(line.removeprefix(name))


@pytest.mark.parametrize(
    "sent", [{WORDS: "off"}, {WORDS: "no-store"}, {"cache-control": "no-store"}], ids=str
)
def test_a_client_that_wants_none_of_it_is_neither_answered_from_it_nor_kept(stack, sent) -> None:
    words = f"off {sent}"
    before = {result: counted(stack, result) for result in ("stored", "bypass")}
    alone = ask(stack, words, sent=sent)
    assert (alone.status_code, alone.headers[WORDS]) == (200, "bypass")
    assert counted(stack, "stored") == before["stored"]
    assert counted(stack, "bypass") == before["bypass"] + 1
    kept = ask(stack, words)
    assert kept.headers[WORDS] == "miss"
    again = ask(stack, words, sent=sent)
    assert (again.headers[WORDS], "age" in again.headers) == ("bypass", False)
    (row,) = hits(stack, ask(stack, words))
    assert row["answered_by"] == kept.headers["x-request-id"]


def test_bypass_is_said_also_where_nothing_could_be_kept(stack) -> None:
    answer = ask(stack, "warm", temperature=1, sent={WORDS: "off"})
    assert (answer.status_code, answer.headers[WORDS]) == (200, "bypass")
    streamed = ask(stack, "warm", stream=True, sent={WORDS: "off"})
    assert (streamed.status_code, streamed.headers[WORDS]) == (200, "bypass")


def test_a_word_that_is_misspelt_is_refused_and_nothing_is_asked(stack) -> None:
    asked = len(stack.entries("alpha"))
    answer = ask(stack, "misspelt", sent={WORDS: "of"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, WORDS)
    assert len(stack.entries("alpha")) == asked


def test_teams_tags_and_residencies_have_answers_of_their_own(stack) -> None:
    keys = [
        stack.key("mine"),
        stack.key("same"),
        stack.key("theirs", team="ads"),
        stack.key("tagged", tags=(("app", "x"),)),
        stack.key("inside", residency="internal_only"),
    ]
    said = [ask(stack, "whose", model="own", token=key.token).headers[WORDS] for key in keys]
    assert said == ["miss", "hit", "miss", "miss", "miss"]


def test_a_revoked_key_gets_nothing(stack) -> None:
    key = stack.key("leaver")
    assert ask(stack, "secret", token=key.token).status_code == 200
    assert ask(stack, "secret", token=key.token).headers[WORDS] == "hit"
    with stack.database.begin() as connection:
        author = ChangeAuthor("test", None, round(time.time() * 1e6))
        revoke(connection, key.key_id, author)
    deadline = time.monotonic() + 10
    while (answer := ask(stack, "secret", token=key.token)).status_code != 401:
        assert time.monotonic() < deadline
    assert WORDS not in answer.headers


def test_a_canarys_answers_are_not_kept_and_its_requests_ask_it(stack) -> None:
    for _ in range(2):
        answer = ask(stack, "canary", model="pair")
        assert answer.headers["x-breakeven-backend"] == "beta/m"
        assert WORDS not in answer.headers


def test_an_answer_of_a_fallback_is_not_kept(stack) -> None:
    stack.fault("alpha", fault="status", status=500, times=1)
    try:
        first = ask(stack, "fallback", model="two")
    finally:
        stack.forgive("alpha")
    assert (first.status_code, first.headers["x-breakeven-backend"]) == (200, "beta/m")
    again = ask(stack, "fallback", model="two")
    assert (again.headers[WORDS], again.headers["x-breakeven-backend"]) == ("miss", "alpha/m")
    assert ask(stack, "fallback", model="two").headers[WORDS] == "hit"


def test_an_answer_of_a_later_stage_is_not_kept(stack) -> None:
    for _ in range(2):
        stack.fault("late", fault="status", status=500, times=1)
        answer = ask(stack, "staged", model="staged")
        stack.forgive("late")
        assert answer.headers["x-breakeven-backend"] == "beta/m"
        assert answer.headers[WORDS] == "miss"


def test_an_answer_that_breaks_off_is_not_kept(stack) -> None:
    stack.fault("alpha", fault="cut", after_tokens=2, times=1)
    try:
        broken = ask(stack, "breaks off", stream=True, max_tokens=8)
    finally:
        stack.forgive("alpha")
    assert b"error" in broken.content
    assert ask(stack, "breaks off", stream=True, max_tokens=8).headers[WORDS] == "miss"


def test_an_idempotency_key_is_looked_at_first(stack) -> None:
    sent = {"idempotency-key": "k1"}
    first = ask(stack, "once only", sent=sent)
    again = ask(stack, "once only", sent=sent)
    assert (first.status_code, again.status_code) == (200, 409)
    assert ask(stack, "once only").headers[WORDS] == "hit"


def test_prices_policies_and_overrides_make_it_forget(stack) -> None:
    assert ask(stack, "news").headers[WORDS] == "miss"
    assert ask(stack, "news").headers[WORDS] == "hit"
    candidates = stack.planner._candidates
    book = load_price_book(stack.database)
    real = candidates._quotes._prices
    candidates.reprice(book.with_prices([]) if book.newest_version != real.newest_version else book)
    assert ask(stack, "news").headers[WORDS] == "hit"  # the same prices are no news
    in_force = stack.app.hot._dispatcher.cache._scopes
    before = in_force.value
    in_force.value = type(before)(
        "another", before._prices_version, before._routes, before._ratio, picture_tokens=1
    )
    try:
        assert ask(stack, "news").headers[WORDS] == "miss"
    finally:
        in_force.value = before
    assert ask(stack, "news").headers[WORDS] == "hit"


def test_hits_count_on_request_limits_alone(running, tmp_path) -> None:
    with running(tmp_path, response_cache=ON, limits=RATES) as stack:
        said = [ask(stack, "limited") for _ in range(7)]
        assert [each.status_code for each in said] == [*[200] * 6, 429]
        assert [each.headers.get(WORDS) for each in said[1:6]] == ["hit"] * 5
        assert said[5].headers["x-ratelimit-remaining-requests"] == "0"
        assert (stack.booked(), len(stack.entries("alpha"))) == (1, 1)


def test_nothing_is_kept_while_it_is_off(running, tmp_path) -> None:
    with running(tmp_path) as stack:
        assert stack.app.hot._dispatcher.cache is None
        for _ in range(2):
            assert WORDS not in ask(stack, "off").headers
        assert len(stack.entries("alpha")) == 2
        assert ask(stack, "off", sent={WORDS: "of"}).status_code == 400
        assert ask(stack, "off", sent={WORDS: "off"}).status_code == 200


def test_it_is_explained_and_a_what_if_leaves_it_out(stack) -> None:
    first, second = (ask(stack, "explained") for _ in range(2))
    assert hits(stack, second)
    found = read_recorded_decision(stack.reader, second.headers["x-request-id"])
    assert found is not None
    (document,) = found.attempts
    assert (document["status"], document["answered_by"]) == (
        "cache_hit", first.headers["x-request-id"],
    )  # fmt: skip
    assert "from the response cache: the answer of alpha/m" in found.lines[0]
    assert read_recorded_decision(stack.reader, second.headers["x-request-id"], "ads") is None
    with stack.reader.connect() as connection:
        traffic = read_traffic(connection, EVER)
    assert traffic.cache_hits >= 1
    assert len(traffic.arrivals) < len(stack.rows()) + traffic.cache_hits
