"""A batch outlives its runner, its workers and the ledger writer: each killed in the middle of it.

Whatever dies, every line has one line in the output files, and every request that an engine began
has one row in the books, also of the tries whose answer was lost with who waited for it.
"""

import contextlib
import json
import os
import signal
from collections import Counter

import httpx

LINES, TOKENS = 40, 120
CHAT = "/v1/chat/completions"
KILLED = ("gateway.batches.runner", "gateway.worker", "ledger.writer")


def ask(host, method: str, path: str, **given) -> httpx.Response:
    headers = {"authorization": f"Bearer {host.token}"}
    with contextlib.suppress(httpx.HTTPError):  # of a worker that is being killed
        return host.client.request(method, f"{host.url}/v1{path}", headers=headers, **given)
    return httpx.Response(503)


def made(host) -> str:
    body = {"model": "own", "max_tokens": TOKENS, "ignore_eos": True}
    lines = [
        {
            "custom_id": f"c{number}", "method": "POST", "url": CHAT,
            "body": {**body, "messages": [{"role": "user", "content": f"word {number}"}]},
        }
        for number in range(LINES)
    ]  # fmt: skip
    text = "\n".join(json.dumps(line) for line in lines)
    file = ask(
        host, "POST", "/files", files={"file": ("in.jsonl", text)}, data={"purpose": "batch"}
    ).json()
    asked = {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h"}
    return ask(host, "POST", "/batches", json=asked).json()["id"]


def batch_of(host, name: str) -> dict:
    answer = ask(host, "GET", f"/batches/{name}")
    return answer.json() if answer.status_code == 200 else {"status": "?", "request_counts": {}}


def done_of(host, name: str) -> int:
    counts = batch_of(host, name)["request_counts"]
    return counts.get("completed", 0) + counts.get("failed", 0)


def completed(host, name: str) -> dict | None:
    batch = batch_of(host, name)
    return batch if batch["status"] == "completed" else None


def output_of(host, batch: dict) -> list[dict]:
    content = ask(host, "GET", f"/files/{batch['output_file_id']}/content")
    return [json.loads(line) for line in content.text.splitlines()]


def settled(host, name: str) -> list[dict]:
    rows = host.rows(f"request_id LIKE '{name}-%'")
    return rows if rows and all(row["settled_us"] for row in rows) else []


def test_a_batch_survives_whatever_is_killed(make_host, patiently) -> None:
    host = make_host(workers=1, engines=1, batches={"in_flight": 8})
    host.start()
    assert host.pids("gateway.batches.runner") == [], "nobody asked for one"
    name = made(host)
    patiently(lambda: done_of(host, name) >= 3, 60)
    for module in KILLED:
        before = done_of(host, name)
        (pid, *_) = patiently(lambda module=module: host.pids(module))
        os.kill(pid, signal.SIGKILL)
        patiently(lambda before=before: done_of(host, name) >= min(before + 3, LINES), 60)
    batch = patiently(lambda: completed(host, name), 60)
    assert batch["request_counts"] == {"total": LINES, "completed": LINES, "failed": 0}
    assert batch["error_file_id"] is None
    output = output_of(host, batch)
    assert [line["custom_id"] for line in output] == [f"c{number}" for number in range(LINES)]

    rows = {row["attempt_id"]: row for row in patiently(lambda: settled(host, name), 60)}
    assert len(rows) == len(settled(host, name))
    for line in output:
        row = rows[f"{line['response']['request_id']}.1"]
        usage = line["response"]["body"]["usage"]
        assert (row["status"], row["output_tokens"]) == ("finished", usage["completion_tokens"])
    begun = Counter(
        entry["request_id"] for entry in host.upstream() if entry["request_id"].startswith(name)
    )
    assert max(begun.values()) == 1, "no try is sent twice under one id"
    assert begun.keys() <= rows.keys()
    assert len(begun) > LINES, "some tries were cut, or this killed nothing"
    assert host.terminate() == 0
    assert host.pids() == []
