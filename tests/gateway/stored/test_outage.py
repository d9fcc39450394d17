"""PostgreSQL away: answers are served, booked later, and say that they are not stored."""

import json

import pytest
from sqlalchemy import text

from ledger.database import make_engine

RESPONSES = "/v1/responses"
ASK = {"model": "own", "input": "hello there", "max_output_tokens": 12}


@pytest.fixture
def outage(postgres_server):
    """`outage(name, begins)`: the database refuses everybody and drops who is there."""
    admin = make_engine(postgres_server.url("postgres")).execution_options(
        isolation_level="AUTOCOMMIT"
    )

    def work(name: str, *, begins: bool) -> None:
        with admin.connect() as connection:
            allowed = "false" if begins else "true"
            connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allowed}'))
            if begins:
                dropped = (
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :n"
                )
                connection.execute(text(dropped), {"n": name})

    yield work
    admin.dispose()


# A cursor of the connection that the outage cut is dropped while it is open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_outage_costs_no_answer_and_no_row(
    run_stack, postgres_server, outage, monkeypatch
) -> None:
    monkeypatch.setattr("gateway.host.prepare.check_durable", lambda _: None)  # a quick server
    name = postgres_server.create()
    with run_stack(ledger={"url": postgres_server.url(name)}) as stack:
        first = stack.post(RESPONSES, ASK).json()
        stack.settled(first["id"].replace("resp_", "req_"))
        assert stack.post(RESPONSES, ASK).status_code == 200  # the key is known
        outage(name, begins=True)
        try:
            whole = stack.post(RESPONSES, ASK)
            streamed = stack.post(RESPONSES, {**ASK, "stream": True})
            turn = stack.post(RESPONSES, {**ASK, "previous_response_id": first["id"]})
            background = stack.post(RESPONSES, {**ASK, "background": True})
        finally:
            outage(name, begins=False)
        assert (whole.status_code, streamed.status_code) == (200, 200), whole.text + streamed.text
        assert whole.json()["store"] is False
        assert whole.headers["x-breakeven-not-stored"] == "unavailable"
        last = json.loads(streamed.text.split("\n\n")[-2].partition("\ndata: ")[2])
        assert last["response"]["store"] is False
        assert (turn.status_code, background.status_code) == (503, 503)
        for answer in (whole, streamed):
            assert stack.settled(answer)[0]["output_tokens"] == 12
        again = stack.post(RESPONSES, {**ASK, "previous_response_id": first["id"]})
        assert (again.status_code, again.json()["store"]) == (200, True)
