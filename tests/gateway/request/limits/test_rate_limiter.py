"""Limits of a minute over HTTP: what is let in, what is told, what the books say of it."""

import asyncio

import httpx
import pytest
import yaml

from gateway.config.settings import parse
from gateway.errors import ConfigError

LIMITS = [
    {"scope": "key:*", "requests_per_minute": 6},
    {"scope": "team:talkers", "tokens_per_minute": 400},
    {"scope": "model:api", "requests_per_minute": 3},
]
LEFT = "x-ratelimit-remaining-"


@pytest.fixture(scope="module")
def limited(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), limits=LIMITS) as stack:
        yield stack


def test_a_key_gets_its_requests_and_then_hears_when_to_come_again(limited) -> None:
    token = limited.key("six").token
    answers = [limited.chat("own", token, max_tokens=2) for _ in range(8)]
    assert [answer.status_code for answer in answers] == [200] * 6 + [429] * 2
    assert [answer.headers[LEFT + "requests"] for answer in answers] == list("54321000")
    assert answers[0].headers["x-ratelimit-limit-requests"] == "6"
    assert answers[0].headers["x-ratelimit-reset-requests"] == "61s"
    assert LEFT + "tokens" not in answers[0].headers
    refused = answers[-1]
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert " is 6 requests a minute" in error["message"]
    assert 50 <= int(refused.headers["retry-after"]) <= 61
    assert refused.headers["x-should-retry"] == "true"
    assert limited.chat("own", limited.key("other").token, max_tokens=2).status_code == 200


def test_the_refusal_is_a_row_that_names_the_limit(limited, patiently) -> None:
    key = limited.key("row")
    for _ in range(6):
        limited.chat("own", key.token, max_tokens=2)
    name = limited.chat("own", key.token, max_tokens=2).headers["x-request-id"]

    def row():
        with limited.reader.connect() as connection:
            query = f"SELECT reason, scope, http_status FROM refusals WHERE request_id = '{name}'"
            return connection.exec_driver_sql(query).one_or_none()

    assert tuple(patiently(row)) == ("over_rate", f"key:{key.key_id}", 429)


def test_tokens_are_counted_ahead_and_corrected_at_the_end(limited) -> None:
    token = limited.key("talker", team="talkers").token
    first = limited.chat("own", token, max_tokens=300)
    assert first.status_code == 200
    used = first.json()["usage"]["total_tokens"]
    ahead = 400 - int(first.headers[LEFT + "tokens"])
    assert ahead >= 300 > used, "the longest answer, before it came"
    second = limited.chat("own", token, max_tokens=2)
    now_left = int(second.headers[LEFT + "tokens"])
    assert abs(400 - used - now_left) <= 40, "what the first one took, and this one's bound"
    huge = limited.chat("own", token, max_tokens=500)
    assert huge.status_code == 429
    assert huge.headers["x-should-retry"] == "false"
    assert "max_tokens" in huge.json()["error"]["message"]


def test_a_stream_tells_its_limits_and_counts_what_came(limited) -> None:
    token = limited.key("streamer", team="talkers").token
    body = {
        "model": "own", "stream": True, "max_tokens": 4,
        "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    answer = limited.post("/v1/chat/completions", body, token)
    assert answer.headers[LEFT + "requests"] == "5"
    assert answer.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/responses/input_tokens"])
def test_a_count_of_tokens_is_a_request(limited, path) -> None:
    """Red before: a target was asked for its count as often as a client liked."""
    token = limited.key(path).token
    said = {"messages": [{"role": "user", "content": "hi"}]} if "messages" in path else {}
    body = {"model": "own", **(said or {"input": "hi"})}
    codes = [limited.post(path, body, token).status_code for _ in range(8)]
    assert codes == [200] * 6 + [429] * 2
    assert limited.chat("own", token, max_tokens=2).status_code == 429
    assert limited.post(path, {**body, "model": "none"}, token).status_code == 404


def test_a_model_has_its_own_and_what_was_refused_there_counts_nowhere(limited) -> None:
    token = limited.key("many").token
    codes = [limited.chat("api", token, max_tokens=2).status_code for _ in range(5)]
    assert codes == [200] * 3 + [429] * 2
    assert limited.chat("own", token, max_tokens=2).headers[LEFT + "requests"] == "2"


def ask_all(url: str, token: str, count: int) -> list[int]:
    async def ask() -> list[int]:
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(trust_env=False, timeout=60, limits=limits) as client:
            body = {
                "model": "own", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}],
            }  # fmt: skip
            headers = {"authorization": f"Bearer {token}"}
            posts = [
                client.post(f"{url}/v1/chat/completions", json=body, headers=headers)
                for _ in range(count)
            ]
            return [result.status_code for result in await asyncio.gather(*posts)]

    return asyncio.run(ask())


def test_many_at_once_are_exactly_so_many(limited) -> None:
    codes = ask_all(limited.url, limited.key("crowd").token, 40)
    assert (codes.count(200), codes.count(429)) == (6, 34)


@pytest.mark.long
def test_all_workers_of_a_host_count_as_one(make_host) -> None:
    server = {"port": 0, "workers": 2, "timeouts": {"drain_s": 8}}
    host = make_host(server=server, limits=[{"scope": "team:*", "requests_per_minute": 100}])
    host.start()
    codes = ask_all(host.url, host.key("crowd", team="crowd"), 300)
    assert (codes.count(200), codes.count(429)) == (100, 200)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"scope": "key:*"}, "limits nothing"),
        ({"scope": "provider:alpha", "requests_per_minute": 1}, "is not a kind of scope"),
        ({"scope": "global:*", "requests_per_minute": 1}, "takes no name"),
        ({"scope": "key:short", "requests_per_minute": 1}, "breakeven keys list"),
        ({"scope": "model:nobody", "requests_per_minute": 1}, "no model named"),
        ({"scope": "key:*", "requests_per_minute": 0}, "must be more than 0"),
        ({"scope": "key:*", "requests_per_hour": 5}, "requests_per_minute"),
    ],
)
def test_a_limit_that_limits_nothing_is_named(limited, limit, words) -> None:
    text = (limited.state / "breakeven.yaml").read_text()
    document = yaml.safe_load(text)
    document["limits"] = [limit]
    with pytest.raises(ConfigError) as caught:
        parse(yaml.safe_dump(document), name="test")
    assert "limits" in str(caught.value)
    assert words in str(caught.value)
