"""From an uploaded file to output files, as clients see it and as the books say."""

import json

import pytest
from sqlalchemy import text

from gateway.clock import Clock
from ledger.identity.keys import revoke_key


@pytest.fixture(autouse=True)
def _started(runner) -> None:
    """Every test here has a runner."""


def requests(stack, batch: dict) -> list[dict]:
    stack.booked()  # the writer may be behind
    return stack.rows("request_id LIKE :id", id=f"{batch['id']}-%")


def test_every_line_is_answered_once_and_booked_once(stack, client, line, patiently) -> None:
    lines = [line(f"c{n}", max_tokens=3 + n % 3) for n in range(12)]
    lines[5]["body"]["rid"] = "mine"  # no target gets it
    made = client.make(lines, metadata={"job": "nightly"})
    assert (made["status"], made["object"], made["output_file_id"]) == ("validating", "batch", None)
    assert made["expires_at"] - made["created_at"] == 86_400
    done = client.ended(made)
    assert done["status"] == "completed"
    assert done["request_counts"] == {"total": 12, "completed": 12, "failed": 0}
    assert done["metadata"] == {"job": "nightly"}
    assert done["error_file_id"] is None
    times = [done[f"{name}_at"] for name in ("created", "in_progress", "finalizing", "completed")]
    assert times == sorted(times)
    found = client.lines(done)
    assert [finding["custom_id"] for finding in found] == [
        each_line["custom_id"] for each_line in lines
    ]
    headers = [finding["response"].get("headers") for finding in found]
    assert headers[5] == {"x-breakeven-ignored": "rid"}
    assert set(map(str, headers[:5] + headers[6:])) == {"None"}
    for finding, asked in zip(found, lines, strict=True):
        assert set(finding) == {"id", "custom_id", "response", "error"}
        assert finding["error"] is None
        assert finding["response"]["status_code"] == 200
        usage = finding["response"]["body"]["usage"]
        assert usage["completion_tokens"] == asked["body"]["max_tokens"]
        (row,) = stack.settled(finding["response"]["request_id"])
        assert row["output_tokens"] == usage["completion_tokens"]
        assert (row["status"], row["team_id"], row["backend"]) == ("finished", "search", "own")
        assert json.loads(row["tags"])["batch"] == done["id"]
        assert row["slo_met"] is None, "a line was promised nothing, so it misses nothing"
    assert len(requests(stack, done)) == 12


def test_bad_lines_fail_alone(stack, client, line) -> None:
    made = client.make(
        [line("good"), line("empty", messages=[]), line("long", max_tokens=10**9), line("too")]
    )
    done = client.ended(made)
    assert done["status"] == "completed"
    assert done["request_counts"] == {"total": 4, "completed": 2, "failed": 2}
    assert [each_line["custom_id"] for each_line in client.lines(done)] == ["good", "too"]
    empty, long = client.lines(done, "error")
    assert (empty["custom_id"], empty["response"]["status_code"]) == ("empty", 400)
    assert empty["response"]["body"]["error"]["param"] == "messages"
    assert empty["error"] is None
    assert long["response"]["body"]["error"]["code"] == "context_length_exceeded"
    assert len(requests(stack, done)) == 2


def test_a_file_with_faults_fails_whole_and_says_where(client, line) -> None:
    wrong_url = {**line("b"), "url": "/v1/embeddings"}
    lines = [
        line("a"), wrong_url, line("a"), {**line("d"), "method": "GET"}, line("e", "nobody"),
        line("f", stream=True), {"custom_id": "g"},
    ]  # fmt: skip
    text_ = b"".join(json.dumps(each_line).encode() + b"\n" for each_line in lines) + b"{not json\n"
    done = client.ended(client.make(text_))
    assert done["status"] == "failed"
    assert done["failed_at"] is not None
    assert done["request_counts"]["total"] == 0
    assert done["errors"]["object"] == "list"
    told = [(entry["line"], entry["code"]) for entry in done["errors"]["data"]]
    assert told == [
        (2, "invalid_url"), (3, "duplicate_custom_id"), (4, "invalid_method"),
        (5, "model_not_found"), (6, "unsupported_parameter"), (7, "missing_required_parameter"),
        (8, "invalid_json_line"),
    ]  # fmt: skip


def test_what_is_asked_of_apis_alone_goes_there_at_once(stack, client, line) -> None:
    done = client.ended(client.make([line("a", "api"), line("b", "api")]))
    assert done["request_counts"]["completed"] == 2
    assert {row["provider"] for row in requests(stack, done)} == {"alpha"}


def test_a_model_with_engines_waits_for_them_and_not_for_money(
    stack, client, line, runner, monkeypatch, patiently
) -> None:
    """`chat` may spill; its lines do so only when their batch is near its end."""
    monkeypatch.setattr("router.idle.SHARE", 0.0)  # no engine is ever idle enough
    made = client.make([line("a", "chat"), line("b", "chat")])
    patiently(lambda: client.batch(made)["status"] == "in_progress")
    patiently(lambda: len(stack.app.entrance.hot._open) == 0)
    assert requests(stack, made) == []
    monkeypatch.setattr(runner._carrier, "_spill_us", 25 * 3600 * 10**6)  # as if near its end
    done = client.ended(made)
    assert done["request_counts"]["completed"] == 2
    rows = requests(stack, done)
    assert {row["provider"] for row in rows} == {"alpha"}
    assert {row["spill_reason"] for row in rows} == {"batch"}


def test_other_endpoints(stack, client, line) -> None:
    embed = {"custom_id": "e", "method": "POST", "url": "/v1/embeddings",
             "body": {"model": "embed", "input": "hello"}}  # fmt: skip
    done = client.ended(client.make([embed], endpoint="/v1/embeddings"))
    assert client.lines(done)[0]["response"]["body"]["data"][0]["object"] == "embedding"
    said = {"custom_id": "r", "method": "POST", "url": "/v1/responses",
            "body": {"model": "own", "input": "hello", "max_output_tokens": 16}}  # fmt: skip
    done = client.ended(client.make([said], endpoint="/v1/responses"))
    assert client.lines(done)[0]["response"]["body"]["object"] == "response"
    plain = {"custom_id": "p", "method": "POST", "url": "/v1/completions",
             "body": {"model": "own", "prompt": "hello", "max_tokens": 3}}  # fmt: skip
    done = client.ended(client.make([plain], endpoint="/v1/completions"))
    assert client.lines(done)[0]["response"]["body"]["object"] == "text_completion"


def test_cancelled_in_the_middle(stack, client, line, patiently) -> None:
    made = client.make([line(f"c{n}", max_tokens=3000, ignore_eos=True) for n in range(40)])
    patiently(lambda: client.batch(made)["status"] == "in_progress")
    patiently(lambda: stack.app.entrance.hot.in_flight > 0)
    answer = client.ask("POST", f"/batches/{made['id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelling")
    done = client.ended(made)
    assert done["status"] == "cancelled"
    counts = done["request_counts"]
    assert counts["failed"] > 0
    assert counts["completed"] + counts["failed"] == counts["total"] == 40
    cut = client.lines(done, "error")
    assert {item["error"]["code"] for item in cut} == {"batch_cancelled"}
    assert len(client.lines(done)) + len(cut) == 40
    patiently(lambda: stack.app.entrance.hot.in_flight == 0)
    again = client.ask("POST", f"/batches/{made['id']}/cancel")
    assert again.json()["status"] == "cancelled"
    patiently(lambda: all(row["settled_us"] for row in requests(stack, done)))


def test_what_is_not_done_in_time_expires(stack, client, line, monkeypatch, patiently) -> None:
    monkeypatch.setattr("router.idle.SHARE", 0.0)
    made = client.make([line("a"), line("b")])
    patiently(lambda: client.batch(made)["status"] == "in_progress")
    with stack.database.begin() as connection:
        over = text("UPDATE batches SET expires_us = 1 WHERE id = :id")
        connection.execute(over, {"id": made["id"]})
    done = client.ended(made)
    assert (done["status"], done["output_file_id"]) == ("expired", None)
    assert done["expired_at"] is not None
    assert [each_line["error"]["code"] for each_line in client.lines(done, "error")] == [
        "batch_expired"
    ] * 2


def test_a_revoked_key_fails_its_lines(stack, make_client, line, monkeypatch, patiently) -> None:
    created = stack.key("leaving", team="leaving")
    leaving = make_client(stack.url, created.token)
    staying = make_client(stack.url, stack.key("staying", team="leaving").token)
    monkeypatch.setattr("router.idle.SHARE", 0.0)
    made = leaving.make([line("a")])
    patiently(lambda: staying.batch(made)["status"] == "in_progress")
    with stack.database.begin() as connection:
        revoke_key(connection, created.key_id, now_us=Clock().wall_us())
    patiently(lambda: leaving.ask("GET", "/batches").status_code == 401)
    monkeypatch.undo()
    done = staying.ended(made)
    assert done["request_counts"] == {"total": 1, "completed": 0, "failed": 1}
    (cut,) = staying.lines(done, "error")
    assert cut["response"]["body"]["error"]["code"] == "invalid_api_key"
    assert requests(stack, done) == []


def test_a_budget_without_room_fails_its_line_once(stack, make_client, line, patiently) -> None:
    poor = make_client(stack.url, stack.key("poor", team="poor").token)
    done = poor.ended(poor.make([line("a")]))
    (cut,) = poor.lines(done, "error")
    assert cut["response"]["body"]["error"]["code"] == "budget_exceeded"
    assert requests(stack, done) == []


def test_lines_wait_for_money_that_is_held_and_not_spent(
    stack, make_client, line, patiently
) -> None:
    """Each may cost 0.004 USD and costs next to nothing; 0.006 has room for one at a time."""
    tight = make_client(stack.url, stack.key("tight", team="tight").token)
    lines = [line(f"c{n}", "api", max_tokens=4000, stop="e") for n in range(8)]
    done = tight.ended(tight.make(lines))
    assert done["request_counts"] == {"total": 8, "completed": 8, "failed": 0}
    patiently(lambda: len(requests(stack, done)) == 8)


def test_two_hosts_on_one_postgresql_share_a_batch(
    postgres_url, run_stack, with_runner, make_client, line, monkeypatch
) -> None:
    """Each line once, whoever has it; and each host has some."""
    # The tests' server is quick because it may lose commits.
    monkeypatch.setattr("gateway.host.prepare.check_durable", lambda _: None)
    with run_stack(ledger={"url": postgres_url}, batches={"in_flight": 4}) as stack:
        client = make_client(stack.url, stack.token)
        with with_runner(stack, "one") as first_with_runner, with_runner(stack, "two") as two:
            lines = [line(f"c{n}", max_tokens=60, ignore_eos=True) for n in range(24)]
            done = client.ended(client.make(lines), 60)
        assert done["request_counts"] == {"total": 24, "completed": 24, "failed": 0}
        found = [answer["custom_id"] for answer in client.lines(done)]
        assert found == [asked["custom_id"] for asked in lines]
        shares = first_with_runner._carrier.tally.ok, two._carrier.tally.ok
        assert sum(shares) == 24
        assert min(shares) > 0
        ids = [answer["response"]["request_id"] for answer in client.lines(done)]
        for name in ids:
            stack.settled(name)
