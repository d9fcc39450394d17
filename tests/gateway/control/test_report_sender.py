"""A report goes out once its period is over, to each place once, and again where it was not taken.

The text that goes out is the report's of the same books.
"""

import asyncio
import json
from datetime import UTC, datetime

import httpx
import pytest
from sqlalchemy import insert

from gateway.config.settings import parse
from gateway.control.mail import PartlyTaken
from gateway.control.report_sender import ReportSender
from ledger.database import make_engine, migrate, sqlite_url
from ledger.orm import tables as orm
from ledger.reporting_zone import ReportingZone
from ledger.reports.periodic import PeriodicReport, periodic_report
from ledger.reports.report_turns import LEASE_US, last_period

USD, DAY_US = 10**12, 86_400 * 10**6
NOW_US = int(datetime(2026, 11, 18, 9, tzinfo=UTC).timestamp()) * 10**6
URL = "https://chat.example/hooks/s3cret"


class Clock:
    at_us = NOW_US

    def wall_us(self) -> int:
        return self.at_us


@pytest.fixture
def ledger(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    engine = make_engine(url, keep_open=True)
    with engine.begin() as connection:
        connection.execute(
            insert(orm.GpuContractRow),
            {"pool": "p", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 2,
             "billing": "reserved", "pusd_per_hour": USD // 2, "ops_seconds_per_week": 0,
             "ops_pusd_per_hour": 0, "simulated": False, "recorded_us": NOW_US - 60 * DAY_US},
        )  # fmt: skip
    yield engine
    engine.dispose()


class Hook:
    def __init__(self) -> None:
        self.heard: list[dict] = []
        self.status = 200

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.heard.append(json.loads(request.content))
        return httpx.Response(self.status)


def sender_of(ledger, clock, tmp_path, **report: object) -> ReportSender:
    one = {"name": "weekly", "folder": str(tmp_path / "out"), "webhook_env": "HOOK", **report}
    document = {"reports": [{name: value for name, value in one.items() if value is not None}]}
    settings = parse(json.dumps(document), name="test")
    return ReportSender(settings, ledger, clock, {"HOOK": URL})


def look(sender: ReportSender, hook: Hook) -> None:
    async def once() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(hook)) as client:
            await sender.send_due(client)

    asyncio.run(once())


def test_a_week_that_is_over_goes_out_once_to_each_place(ledger, tmp_path) -> None:
    hook, sender = Hook(), sender_of(ledger, Clock(), tmp_path)
    look(sender, hook)
    look(sender, hook)
    (heard,) = hook.heard
    text = (tmp_path / "out" / "weekly-2026-11-09.txt").read_text()
    scope = last_period(ReportingZone(), "week", NOW_US)
    with ledger.connect() as connection:
        made = periodic_report(connection, scope, ReportingZone(), NOW_US)
    assert heard["text"] == text == made.text()
    assert heard["verdict"] == made.described()["verdict"]
    assert heard["id"].startswith("weekly:webhook:")


def test_what_is_not_taken_is_sent_again_after_its_lease(ledger, tmp_path, caplog) -> None:
    clock, hook = Clock(), Hook()
    sender = sender_of(ledger, clock, tmp_path, folder=None)
    hook.status = 503
    look(sender, hook)
    assert "the webhook of report weekly: delivery failed message=" in caplog.text
    assert "status=503" in caplog.text
    assert "s3cret" not in caplog.text
    look(sender, hook)
    assert len(hook.heard) == 1, "it waits"
    clock.at_us += LEASE_US
    hook.status = 200
    look(sender, hook)
    clock.at_us += 10 * LEASE_US
    look(sender, hook)
    assert len(hook.heard) == 2


def test_slack_gets_the_text_alone(ledger, tmp_path) -> None:
    document = {"reports": [{"name": "w", "webhook_env": "HOOK"}], "alerts": {"form": "slack"}}
    hook = Hook()
    look(ReportSender(parse(json.dumps(document), name="t"), ledger, Clock(), {"HOOK": URL}), hook)
    (heard,) = hook.heard
    assert heard.keys() == {"text"}


def test_slack_reads_no_mention_out_of_a_report(ledger, monkeypatch) -> None:
    monkeypatch.setattr(PeriodicReport, "text", lambda _: "tag:run=<!channel> & more")
    document = {"reports": [{"name": "w", "webhook_env": "HOOK"}], "alerts": {"form": "slack"}}
    hook = Hook()
    look(ReportSender(parse(json.dumps(document), name="t"), ledger, Clock(), {"HOOK": URL}), hook)
    assert hook.heard == [{"text": "tag:run=&lt;!channel&gt; &amp; more"}]


def test_the_next_week_is_another_report_and_hours_have_time_to_close(ledger, tmp_path) -> None:
    clock, hook = Clock(), Hook()
    sender = sender_of(ledger, clock, tmp_path, folder=None)
    look(sender, hook)
    monday_us = int(datetime(2026, 11, 23, tzinfo=UTC).timestamp()) * 10**6
    clock.at_us = monday_us + 60 * 10**6
    look(sender, hook)
    assert len(hook.heard) == 1
    clock.at_us = monday_us + 3_600 * 10**6
    look(sender, hook)
    assert len(hook.heard) == 2


def test_where_nothing_stands_out_a_report_of_the_unusual_stays(ledger, tmp_path) -> None:
    hook = Hook()
    look(sender_of(ledger, Clock(), tmp_path, when="unusual", every="day"), hook)
    assert hook.heard == []
    assert not (tmp_path / "out").exists()


def test_an_address_that_is_not_set_is_named(ledger, tmp_path, caplog) -> None:
    sender = sender_of(ledger, Clock(), tmp_path, webhook_env="NONE", folder=None)
    look(sender, Hook())
    assert "`NONE` is not set" in caplog.text


def test_a_report_that_cannot_be_made_ends_nothing_and_others_go_out(
    ledger, caplog, monkeypatch
) -> None:
    """Whoever sends is in the process that knows whether engines are well."""
    made = {"broken": 0}
    document = {"reports": [{"name": name, "webhook_env": "HOOK"} for name in ("broken", "whole")]}
    hook = Hook()
    sender = ReportSender(parse(json.dumps(document), name="t"), ledger, Clock(), {"HOOK": URL})
    read = sender._read

    def breaks(*given):
        made["broken"] += 1
        if made["broken"] == 1:
            raise ZeroDivisionError("nothing to divide by")
        return read(*given)

    monkeypatch.setattr(sender, "_read", breaks)
    look(sender, hook)
    (heard,) = hook.heard
    assert heard["name"] == "whole"
    assert "report failed report=broken error=ZeroDivisionError" in caplog.text


def test_mail_that_one_of_several_refuses_is_not_sent_to_all_again(
    ledger, caplog, monkeypatch
) -> None:
    """One address that was misspelt had the others get the report each hour until the next."""
    clock, posted = Clock(), []

    def refused_by_one(*given):
        posted.append(given)
        raise PartlyTaken("the mail server refused 1 of 2 addresses")

    monkeypatch.setattr("gateway.control.report_sender.send_mail", refused_by_one)
    document = {"reports": [{"name": "w", "mail_to": ["a@b.example", "c@b.example"]}],
                "mail": {"server": "m.example:25", "sender": "books@b.example"}}  # fmt: skip
    sender = ReportSender(parse(json.dumps(document), name="t"), ledger, clock, {})
    look(sender, Hook())
    clock.at_us += 10 * LEASE_US
    look(sender, Hook())
    assert len(posted) == 1
    assert "refused 1 of 2 addresses" in caplog.text
