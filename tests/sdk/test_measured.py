"""Sound through OpenAI's SDKs and rankings through Cohere's, unchanged, against one gateway."""

import json
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from deploy import parts

CLIENTS = Path(__file__).with_name("clients")
LIMIT_S = 60
SECONDS_PUSD = 2 * 100_000_000  # two seconds at whisper-1's price
CONFIG = {
    "models": {
        "chat": {"targets": ["talks/chat"]},
        "hear": {"targets": ["hears/whisper-1"]},
        "hear-4o": {"targets": ["hears/gpt-4o-transcribe"]},
        "rank": {"targets": ["ranks/rerank"]},
    },
    "providers": {
        "talks": {"simulated": True, "start": True, "prices_as": "openai/gpt-4o-mini"},
        "hears": {
            "simulated": True, "start": True, "prices_as": "openai/whisper-1",
            "kinds": ["transcription"],
        },
        "ranks": {
            "simulated": True, "start": True, "prices_as": "voyage/rerank-2.5",
            "kinds": ["rerank"],
        },
    },
    "policies": [{"name": "all"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(serve):
    found = serve(CONFIG)
    found.token = found.key(team="search")
    return found


def run(command: list[str], folder: Path, **environ: str) -> dict:
    answer = subprocess.run(
        command, cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
        check=False, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr.decode()[-4000:]
    return json.loads(answer.stdout)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.part(name))
        for name in ("openai-2", "openai-3", "openai-node")
    ],
)
def heard(request, gateway, tmp_path_factory) -> dict:
    """What one of OpenAI's SDKs saw."""
    found, folder = parts.by_name(request.param).find(), tmp_path_factory.mktemp("client")
    if request.param == "openai-node":
        shutil.copy(CLIENTS / "sound_checks.mjs", folder)
        (folder / "node_modules").symlink_to(found / "node_modules")
        command = ["node", str(folder / "sound_checks.mjs")]
    else:
        command = [str(found), "-I", str(CLIENTS / "sound_checks.py")]
    return run(command, folder, OPENAI_BASE_URL=gateway.base_url, OPENAI_API_KEY=gateway.token)


@pytest.fixture(scope="module", params=[pytest.param(None, marks=pytest.mark.part("cohere"))])
def ranked(gateway, tmp_path_factory) -> dict:
    """What Cohere's SDK saw."""
    command = [str(parts.by_name("cohere").find()), "-I", str(CLIENTS / "rank_checks.py")]
    folder = tmp_path_factory.mktemp("client")
    address = gateway.base_url.removesuffix("/v1")
    return run(command, folder, BASE_URL=address, API_KEY=gateway.token)


def test_every_shape_of_a_transcript(heard: dict) -> None:
    assert [seen for seen in heard.values() if "failed" in str(seen)] == []
    text = heard["transcript"]["text"]
    assert text.startswith("[simulated]:")
    assert heard["transcript"]["usage"] == {"type": "duration", "seconds": 2}
    assert heard["verbose"] == {"text": text, "duration": 2.0}
    assert heard["plain"]["text"].strip() == text
    assert heard["plain"]["srt"].startswith("1\n00:00:00,000 -->")
    assert heard["plain"]["vtt"].startswith("WEBVTT")
    assert heard["translation"]["text"] == text


def test_a_stream_of_a_transcript(heard: dict) -> None:
    seen = heard["stream"]
    assert seen["kinds"] == ["transcript.text.delta", "transcript.text.done"]
    assert seen["text"] == seen["done"]


def test_a_model_that_cannot_hear_is_named(heard: dict) -> None:
    seen = heard["not_heard"]
    assert (seen["status"], seen["param"]) == (400, "model")
    assert "does not serve" in seen["message"] or "serves this path" in seen["message"]


def test_two_seconds_are_paid_for(gateway, heard: dict) -> None:
    seen = heard["transcript"]
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    (row,) = gateway.until(lambda: gateway.rows(query, id=seen["request_id"]), 20)
    assert (row["kind"], row["audio_ms"], row["cost_pusd"]) == (
        "transcription", 2000, SECONDS_PUSD,
    )  # fmt: skip
    assert Decimal(seen["cost"]) == Decimal(SECONDS_PUSD).scaleb(-12)


def test_rankings_by_both_versions_of_coheres_api(ranked: dict) -> None:
    assert ranked["second"]["indexes"] == ranked["first"]["indexes"] == [2, 0]
    assert ranked["second"]["scores"] == [1.0, 0.5]


def test_a_model_that_cannot_rank_is_named(ranked: dict) -> None:
    assert ranked["not_ranked"]["status"] == 400
    assert ranked["not_ranked"]["error"]["param"] == "model"
