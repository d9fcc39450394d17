"""The process of a what-if: what it tells, of what it cannot play, and how far it is."""

import io
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
import pytest

from gateway.clock import Clock
from gateway.control.whatif_jobs import (
    IN_FORCE,
    WhatIfJobSpec,
    WhatIfProgress,
    WhatIfRequest,
    WhatIfResult,
)
from gateway.whatif import job
from gateway.whatif.ledger_traffic import SpanError
from gateway.whatif.traffic_selection import WhatIfInputError
from ledger.database import URL_VARIABLE, make_engine, migrate
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.writing.repository import LedgerRepository

S, NOW_US, COUNT = 10**6, 1_790_000_000_000_000, 40
SETS = (("new", "policies: [{name: out, slo: {ttft_ms: 9000}}]"), ("old", IN_FORCE))


def records() -> Iterator[AttemptOpened | AttemptSettled]:
    """A conversation a second, answered by an API."""
    for n in range(COUNT):
        at_us = NOW_US - 3_600 * S + n * S
        yield AttemptOpened(
            attempt_id=f"r{n}.1", request_id=f"r{n}", attempt_no=1, opened_us=at_us, key_id="k",
            user_id=None, team_id="search", org_id="acme", kind="chat", stream=True, model="chat",
            target="openai/mini", backend="api", pool=None, engine=None, provider="openai",
            upstream_model="mini", simulated=False, policy="p", policy_version="v",
            reason="cheapest", spill_reason=None, price_version=None, bound_pusd=1,
            prompt_tokens_estimate=100, ttft_predicted_us=1,
        )  # fmt: skip
        yield AttemptSettled(
            attempt_id=f"r{n}.1", settled_us=at_us + S, status="finished", http_status=200,
            tokens=TokenCounts(input=100 + n, output=20), basis="reported", cost_pusd=1,
            ttft_us=300_000, duration_us=900_000, engine_us=0, finish_reason="stop",
            slo_met=True, compared=(),
        )  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    found = f"sqlite:///{tmp_path_factory.mktemp('books') / 'ledger.db'}"
    migrate(found)
    engine = make_engine(found)
    LedgerRepository(engine, host="here").import_records(list(records()), journal="j", at_us=NOW_US)
    engine.dispose()
    return found


@pytest.fixture
def order(under):
    def make(**asked) -> WhatIfJobSpec:
        question = {"sets": SETS, "ledger": "last-24-hours", **asked}
        return WhatIfJobSpec(
            WhatIfRequest(**question), under("tight").model_dump(mode="json"), NOW_US
        )

    return make


def told(place) -> WhatIfResult:
    return msgspec.json.decode((place / "told.json").read_bytes(), type=WhatIfResult)


@pytest.fixture
def run(url, tmp_path, monkeypatch):
    """All but the process: it does not get nice here, nor does it end."""

    def main(order: WhatIfJobSpec) -> WhatIfResult:
        given = io.BytesIO(msgspec.json.encode(order) + b"\n")
        monkeypatch.setattr(job.sys, "stdin", SimpleNamespace(buffer=given))
        monkeypatch.setattr(job, "_lower_priority", lambda: None)
        monkeypatch.setattr(job, "_end_with_starter", lambda: None)
        job.main([str(tmp_path)], {URL_VARIABLE: url})
        return told(tmp_path)

    return main


def test_two_sets_on_the_ledgers_traffic(run, order, tmp_path) -> None:
    found = run(order()).result
    assert found is not None
    assert [result["policy"] for result in found["results"]] == ["new", "old"]
    assert [result["classes"][0]["class"] for result in found["results"]] == ["out", "tight"]
    assert (found["traffic"]["requests"], found["traffic"]["cut"]) == (COUNT, False)
    assert found["disagreement"]["requests"] == COUNT
    last = msgspec.json.decode((tmp_path / "progress.json").read_bytes(), type=WhatIfProgress)
    assert last == WhatIfProgress("plays old", 2 * COUNT, 2 * COUNT)


def test_only_the_earliest_are_played_and_it_says_so(run, order) -> None:
    found = run(order(most=7)).result
    assert (found["traffic"]["requests"], found["traffic"]["cut"]) == (7, True)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"ledger": "last-week"}, "invalid span of time"),
        ({"ledger": "2020-01-01..2020-01-02"}, "the ledger has no answered conversation"),
        ({"engines": ("chat",)}, "POOL=PROFILE"),
        ({"models": ("chat=nothing",)}, "there is no model `nothing`"),
        ({"sets": (("x", "policies: 3"),)}, "x cannot be used"),
    ],
)
def test_what_cannot_be_played_is_told_in_words(run, order, asked, words) -> None:
    found = run(order(**asked))
    assert found.result is None
    assert words in found.fault


def test_the_same_errors_from_within(url, order, tmp_path) -> None:
    telling = job.ProgressWriter(tmp_path, Clock())
    with pytest.raises(SpanError):
        job.answer(order(ledger="x"), url, telling)
    with pytest.raises(WhatIfInputError):
        job.answer(order(models=("a", "b")), url, telling)


def test_how_far_it_is_is_written_now_and_then(tmp_path) -> None:
    now = [0.0]
    telling = job.ProgressWriter(tmp_path, Clock(lambda: now[0], lambda: 0))
    report, seen = telling.of(["new", "old"], 1_000), []
    for name in ("new", "old"):
        for done in range(0, 1_001, 100):
            now[0] += job.TOLD_EVERY_S / 2.5
            (tmp_path / "progress.json").unlink(missing_ok=True)
            report(name, done)
            if (tmp_path / "progress.json").exists():
                raw = (tmp_path / "progress.json").read_bytes()
                seen.append(msgspec.json.decode(raw, type=WhatIfProgress))
    assert [event.done for event in seen] == sorted(event.done for event in seen)
    assert 6 <= len(seen) < 22, "not each time"
    assert {event.of for event in seen} == {2_000}
    assert (seen[-1].doing, seen[-1].done) == ("plays old", 2_000)


def test_the_process_ends_with_who_started_it(tmp_path) -> None:
    """Its standard input is closed before the question is answered: it waits for the ledger."""
    lines = (
        "import threading, gateway.whatif.job as job\n"
        "threading.Thread(target=job._end_with_starter, daemon=True).start()\n"
        "print('up', flush=True)\nthreading.Event().wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", lines], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"up\n"
    assert process.poll() is None, "the control: it waits"
    process.stdin.close()
    assert process.wait(60) == 1
    process.stdout.close()
