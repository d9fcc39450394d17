"""Real processes: what an address hears of requests is what the books say, through kills."""

import hmac
import json
from typing import Any

from deploy.upstream_server import UpstreamServer

SECRET = "a-secret-of-the-test"


class Listener(UpstreamServer):
    """Hears batches, and answers `status`."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.events: list[dict[str, Any]] = []
        self.forged = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if self.status == 200:
            signed = dict(scope["headers"])[b"x-breakeven-signature"].decode()
            at_s = signed.partition(",")[0].removeprefix("t=")
            expected = hmac.new(SECRET.encode(), f"{at_s}.".encode() + body, "sha256").hexdigest()
            self.forged += signed != f"t={at_s},v1={expected}"
            self.events += json.loads(body)["events"]
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def test_an_address_that_was_away_hears_all_of_it_afterwards(make_host, patiently) -> None:
    with Listener() as listener:
        host = make_host(
            workers=1, engines=1, events={"webhook_env": "HOOK", "secret_env": "HOOK_SECRET"}
        )
        host.environ |= {"HOOK": f"http://127.0.0.1:{listener.port}/in", "HOOK_SECRET": SECRET}
        host.start()

        def heard(answer) -> bool:
            if any(event["id"].startswith(answer) for event in listener.events):
                return True
            host.ask()  # something has to be sealed after the feed began
            return False

        patiently(lambda: heard("req_"))
        listener.status = 503
        first = host.ask().headers["x-request-id"]
        patiently(lambda: host.rows(f"request_id = '{first}' AND settled_us IS NOT NULL"))
        host.kill_all()
        host.start()
        listener.status = 200
        last = host.ask().headers["x-request-id"]
        patiently(lambda: heard(first) and heard(last))
        told = {event["id"]: event for event in listener.events}
        for request_id in (first, last):
            (row,) = host.rows(f"request_id = '{request_id}'")
            data = told[row["attempt_id"]]["data"]
            assert told[row["attempt_id"]]["type"] == "attempt.settled"
            assert (data["output_tokens"], data["team_id"]) == (
                row["output_tokens"], row["team_id"],
            )  # fmt: skip
            assert int(data["cost_usd"].replace(".", "")) == row["cost_pusd"]
        assert listener.forged == 0
