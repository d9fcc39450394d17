"""Engines: the latest sample is shown as what it is, old or fresh; counters become rates."""

import time

from sqlalchemy import insert

from dashboard.page.engines import drift_rows, upkeep_rows
from ledger.database import make_engine, migrate
from ledger.fleet.driftnotes import DriftNote
from ledger.fleet.upkeepnotes import UpkeepNote
from ledger.orm import tables as orm
from ledger.overrides import DISABLED, Override, store_override

S = 10**6


def test_the_latest_sample_is_shown(page, books, text_of, monkeypatch) -> None:
    filled = books(peak=2.0, days=1)
    monkeypatch.setattr("dashboard.data.reads.rounded_now_us", lambda _: filled.now_us)
    test = page("engines", filled.url, period="24 h")
    shown = text_of(test)
    assert "pool:llama-70b/0" in shown
    assert "healthy" in shown
    assert "Restarts seen in this period" in shown
    assert [subheader.value for subheader in test.subheader] == [
        "Time to first token", "Time per further token",
        "KV cache in use, highest in each 20 s", "Sequences",
        "Output tokens per second", "Preemptions",
        "Prefix cache hits", "Step time beside its model (1: as it was measured)",
        "Tokens for a dollar of own hardware", "Would other GPUs carry this load for less?",
        "Streams", "Samples",
    ]  # fmt: skip
    assert len(test.get("vega_lite_chart")) == 10
    leads = [element.proto.body for element in test.get("html") if "be-leads" in element.proto.body]
    assert ["engines#streams" in lead for lead in leads[:2]] == [True, True]
    assert ["#samples" in lead for lead in leads].count(True) == 6
    assert "terms#unit" in leads[8]
    listed, samples = (element.value.to_dict("records") for element in test.dataframe)
    assert len(listed) == sum(
        first.backend == "own" and last.status == "finished" for first, last in filled.pairs
    )
    assert len(samples) == 200
    assert samples[0]["state"] == "healthy"
    assert [sample["at (UTC)"] for sample in samples] == sorted(
        (sample["at (UTC)"] for sample in samples), reverse=True
    )


def test_the_chart_of_the_cache_says_what_its_points_are(page, books, text_of, monkeypatch) -> None:
    """As of the books' own end: drawn five seconds later the span is longer, its points wider."""
    filled = books(peak=2.0, days=1)
    monkeypatch.setattr("dashboard.data.reads.rounded_now_us", lambda _: filled.now_us)
    shown = text_of(page("engines", filled.url, period="24 h"))
    assert "KV cache in use, highest in each 20 s" in shown


def test_what_operators_hold_over_policies_is_said(page, books, text_of) -> None:
    filled = books(peak=2.0, days=1)
    engine = make_engine(filled.url)
    now_us = time.time_ns() // 1000
    for subject, until_us in (
        ("target:pool:llama-70b", None),
        ("target:pool:gone", now_us - 60 * S),
    ):
        store_override(engine, Override(0, subject, DISABLED, until_us, 1, "ann", "a fan"))
    engine.dispose()
    for name in ("engines", "routing"):
        shown = text_of(page(name, filled.url, period="24 h"))
        assert "pool:llama-70b gets no new requests, says ann (a fan)." in shown
        assert "pool:gone" not in shown


def test_what_upkeep_is_about_to_do_found_and_did_is_on_the_card() -> None:
    assert upkeep_rows(None) == []
    at_us = 1_795_406_400 * S  # 23 November 2026, 04:00 UTC
    note = UpkeepNote("p/0", restart_us=at_us, stops_us=at_us, pace=0.83, waits="it waits: busy")
    assert upkeep_rows(note) == [
        ("Restarts by the calendar", "Mon 23 Nov 04:00 UTC", None),
        ("Stops by the calendar", "Mon 23 Nov 04:00 UTC", None),
        ("Pace of its first hours, at like load", "83 %", None),
        ("Upkeep", "it waits: busy", None),
    ]
    assert upkeep_rows(UpkeepNote("p/0", starts_us=at_us, done="restarted (weekly)")) == [
        ("Starts by the calendar", "Mon 23 Nov 04:00 UTC", None),
        ("Upkeep", "restarted (weekly)", None),
    ]


def test_an_old_sample_is_never_the_present(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    migrate(url)
    engine = make_engine(url)
    old = time.time_ns() // 1000 - 600 * S
    with engine.begin() as connection:
        values = {"pool": "p", "engine": "p/0", "health": "healthy", "simulated": True}
        connection.execute(insert(orm.EngineSampleRow), {"at_us": old, **values})
    engine.dispose()
    shown = text_of(page("engines", url))
    assert "last sampled" in shown
    assert "healthy" not in shown
    assert "(simulated)" in shown
    assert "unknown" in shown, "a number that the engine does not report is not zero"


def test_no_engine_says_what_to_do(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    assert "No engine has been seen" in text_of(page("engines", url))


def test_what_live_questions_say_of_a_pool_is_told() -> None:
    assert drift_rows(None) == []
    young = DriftNote("chat", "bf16", 1, 0.05, 3, 3, 0, 0)
    assert drift_rows(young) == [("Against its baseline", "3 compared, too few to say", None)]
    well = DriftNote("chat", "bf16", 1, 0.05, 30, 30, 0, 0, 0.01, 0.005, 0.02)
    [(label, text, colour)] = drift_rows(well)
    assert (label, colour) == ("Against bf16", None)
    assert text == "1.00% (0.50% to 2.00%) of tokens differ, at most 5%"
    ill = DriftNote("chat", "bf16", 1, 0.01, 30, 30, 0, 0, 0.08, 0.06, 0.1, drifts=True)
    [(_, text, colour)] = drift_rows(ill)
    assert text.endswith("at most 1%: it drifts")
    assert colour is not None
