"""A client that plays a money case: it sends the requests, and leaves where the case says so."""

import json
import select
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from field_cases import CaseStep, MoneyCase
from field_upstream import PACE, ScriptedAnswer, ScriptedUpstream, ScriptRun

RESET = struct.pack("ii", 1, 0)  # SO_LINGER that sends RST
PATIENCE_S = 20.0
LEFT = 0  # in place of a status: the client did not wait for the answer


@dataclass(slots=True)
class CaseRun:
    """What a case came to. `statuses` by step; `rows` of the ledger, `upstream` runs in order.

    `made_at_first` is what the upstream had made when a client that left read its first event.
    """

    case: MoneyCase
    statuses: dict[str, list[int]] = field(default_factory=dict)
    requests: dict[str, set[str]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    upstream: list[ScriptRun] = field(default_factory=list)
    made_at_first: int | None = None

    def rows_of(self, step: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["request_id"] in self.requests[step]]


def play_case(stack: Any, upstream: ScriptedUpstream, case: MoneyCase) -> CaseRun:
    """Send all requests of a case, then wait until its rows are settled."""
    run, key = CaseRun(case), stack.key(case.name, team=case.name)
    for step in case.steps:
        upstream.answers[case.name] = ScriptedAnswer.read(step.upstream)
        if step.leave is not None:
            run.made_at_first = leave_stream(stack, upstream, case.name, step, key.token)
            run.statuses[step.name] = [LEFT]
            continue
        with ThreadPoolExecutor(step.times if step.at_once else 1) as crowd:
            sent = [crowd.submit(send, stack, step, key.token) for _ in range(step.times)]
            answers = [future.result() for future in sent]
        run.statuses[step.name] = [answer.status_code for answer in answers]
        run.requests[step.name] = {answer.headers["x-request-id"] for answer in answers}
        _settled_rows(stack, key.key_id)
    run.rows = _settled_rows(stack, key.key_id)
    run.upstream = upstream.runs.get(case.name, [])
    assert all(script.ended.wait(PATIENCE_S) for script in run.upstream)
    return run


def send(stack: Any, step: CaseStep, token: str) -> Any:
    if step.form is None:
        return stack.post(step.path, step.body, token)
    files = {"file": (step.form["name"], step.form["sound"])}
    return stack.client.post(
        stack.url + step.path, data=step.form["fields"], files=files, headers=stack.headers(token)
    )


def leave_stream(
    stack: Any, upstream: ScriptedUpstream, case: str, step: CaseStep, token: str
) -> int | None:
    """Send a request and reset its connection.

    Returns what the upstream had made when the first event with content was read, or `None`.
    """
    assert step.leave is not None
    body = json.dumps(step.body).encode()
    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=PATIENCE_S)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    head = (
        f"POST {step.path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {token}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with connection:
        connection.sendall(head.encode() + body)
        script = upstream.run_of(case)
        assert script.begun.wait(PATIENCE_S)
        return _read_until(connection, step.leave, script)


def _read_until(
    connection: socket.socket, leave: dict[str, float], script: ScriptRun
) -> int | None:
    until_s = time.monotonic() + leave.get("after_s", PATIENCE_S * PACE) / PACE
    events, read, at_first = leave.get("after_events"), b"", None
    while (left_s := until_s - time.monotonic()) > 0:
        if not select.select([connection], [], [], left_s)[0]:
            break
        piece = connection.recv(65536)
        if not piece:
            break
        read += piece
        if at_first is None and b"word" in read:
            at_first = script.made
        if events is not None and read.count(b"data:") >= events:
            break
    return at_first


def _settled_rows(stack: Any, key_id: str) -> list[dict[str, Any]]:
    """The rows of a key, once nothing is in flight and the ledger holds all of them."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        stack.booked()
        rows = stack.rows("key_id = :key", key=key_id)
        if all(row["settled_us"] for row in rows):
            return rows
        assert time.monotonic() < deadline_s, f"not settled: {rows}"
        time.sleep(0.01)
