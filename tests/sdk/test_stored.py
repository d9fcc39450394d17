"""OpenAI's SDK on stored answers, with two workers of a real `serve`; kills lose nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

PROGRAM = Path(__file__).with_name("clients") / "stored_checks.py"
LIMIT_S = 240
WORKERS = 2
ENGINE = {
    "kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "replicas": 1, "port": 0,
    "served_name": "simulated-chat",
}  # fmt: skip
CONFIG = {
    "server": {"port": 0, "workers": WORKERS},
    "models": {"chat": {"targets": ["pool:chat"], "compare_with": ["openai/gpt-4o-mini"]}},
    "pools": {
        "chat": {
            "engine": ENGINE,
            "gpu": {
                "type": "H200", "billing": "owned", "usd_per_hour": 3.5, "source": "for the test"
            },
        }
    },
    "dashboard": {"enabled": False},
}  # fmt: skip
EXPECTED = {
    "chain": {"grows": True, "turns": 12},
    "streamed_chain": {"store": True, "previous": True},
    "references": {"status": "incomplete"},
    "retrieved": {
        "same": True, "items": ["Name a machine."], "last": "response.incomplete", "gone": True
    },
    "conversation": {
        "items": 3, "first": "I am Ada.", "left": 3, "topic": "y", "deleted": True
    },
    "background": {"first": "queued", "last": "incomplete", "cancelled": "cancelled"},
    "compacted": {"object": "response.compaction", "types": ["message", "compaction"]},
    "counted": {"grows": True, "object": "response.input_tokens"},
    "custom_tools": {"name": "patch", "same": True, "after": "incomplete"},
    "chat": {
        "text": True, "asked": "Name a machine.", "listed": True, "changed": {"a": "c"},
        "deleted": True,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(serve):
    return serve(CONFIG)


@pytest.fixture(scope="module")
def told(gateway) -> dict:
    """What the client program saw."""
    environ = {"OPENAI_BASE_URL": gateway.base_url, "OPENAI_API_KEY": gateway.key(team="stored")}
    answer = subprocess.run(
        [sys.executable, PROGRAM], env={"PATH": os.environ["PATH"], **environ},
        check=False, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr.decode()[-4000:]
    return json.loads(answer.stdout)


@pytest.mark.parametrize("check", EXPECTED)
def test_the_sdk_sees_what_it_was_promised(told: dict, check: str) -> None:
    assert told[check] == EXPECTED[check]


def test_both_workers_served_it_and_everything_is_booked(gateway, told: dict) -> None:
    query = "SELECT request_id FROM attempts WHERE team_id = 'stored'"
    open_rows = "SELECT 1 FROM attempts WHERE team_id = 'stored' AND settled_us IS NULL"
    gateway.until(lambda: not gateway.rows(open_rows), 20)
    rows = gateway.rows(query)
    drawn_at_start = {row["request_id"][16:26] for row in rows}  # a part of ids, by process
    assert len(drawn_at_start) == WORKERS
    assert len(rows) == len({row["request_id"] for row in rows})


def test_killed_workers_lose_no_answer(gateway) -> None:
    """An answer whose end was seen is found by the workers that come after."""
    headers = {"authorization": f"Bearer {gateway.key(team='killed')}"}
    bound = {"base_url": gateway.base_url, "headers": headers, "trust_env": False, "timeout": 60}
    with httpx.Client(**bound) as client:
        asked = {"model": "chat", "input": "hi", "max_output_tokens": 16}
        answer = client.post("/responses", json=asked).raise_for_status().json()
        long = {**asked, "max_output_tokens": 4000, "background": True}
        made = client.post("/responses", json=long).raise_for_status().json()
        for pid in workers_of(gateway):
            os.kill(pid, signal.SIGKILL)

        def again() -> httpx.Response | None:
            turn = client.post("/responses", json={**asked, "previous_response_id": answer["id"]})
            return turn if turn.status_code == 200 else None

        gateway.until(again, 60)
        assert client.get(f"/responses/{answer['id']}").json() == answer
        cancelled = client.post(f"/responses/{made['id']}/cancel").json()
        assert cancelled["status"] == "cancelled"


def workers_of(gateway) -> list[int]:
    """The pids of the workers of this gateway."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"gateway.worker" in b" ".join(words) and str(gateway.folder).encode() in b" ".join(
            words
        ):
            found.append(int(entry.name))
    assert found
    return found
