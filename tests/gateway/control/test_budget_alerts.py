"""What a webhook hears of a budget, signed, again until it answers well."""

import asyncio
import hmac
import json
import logging

import httpx
import pytest
from sqlalchemy import insert, select, update

from gateway.config.settings import parse
from gateway.control import budget_alerts as module
from gateway.control.budget_alerts import BudgetAlerter, alert_text, message_of
from gateway.errors import ConfigError
from ledger.budgets.alerts import LEASE_US, Alert
from ledger.budgets.windows import window_at
from ledger.database import make_engine, migrate, sqlite_url
from ledger.orm import tables as orm

USD = 10**12
NOON_S = 1_780_056_000
URL = "https://chat.example/hooks/s3cret"
CONFIG = {
    "models": {"m": {"targets": ["openai/gpt-4o-mini"]}},
    "providers": {"openai": {}},
    "budgets": [{"scope": "team:search", "usd": 100, "alert_at": [0.5, 1.0]}],
    "alerts": {"webhook_env": "HOOK", "secret_env": "HOOK_SECRET"},
}


class Noon:
    def __init__(self) -> None:
        self.at_us = NOON_S * 1_000_000

    def wall_us(self) -> int:
        return self.at_us


@pytest.fixture
def ledger(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    engine = make_engine(url, keep_open=True)
    window = window_at("month", "UTC", NOON_S).start_s
    with engine.begin() as connection:
        connection.execute(
            insert(orm.BudgetRow),
            [{"id": "team:search@month", "scope": "team:search", "period": "month",
              "limit_pusd": 100 * USD, "hard": True, "timezone": "UTC", "created_us": 0}],
        )  # fmt: skip
        connection.execute(
            insert(orm.BudgetWindowRow),
            [{"budget_id": "team:search@month", "window": window, "spent_pusd": 80 * USD,
              "granted_pusd": 0}],
        )  # fmt: skip
    yield engine
    engine.dispose()


@pytest.fixture
def hook():
    """A webhook that answers what it is told to, and what it heard."""

    class Hook:
        heard: list[httpx.Request]
        status: int | Exception

        def __init__(self) -> None:
            self.heard, self.status = [], 200

        def __call__(self, request: httpx.Request) -> httpx.Response:
            self.heard.append(request)
            if isinstance(self.status, Exception):
                raise self.status
            return httpx.Response(self.status)

    return Hook()


def look(alerts, hook):
    async def once():
        async with httpx.AsyncClient(transport=httpx.MockTransport(hook)) as client:
            await alerts.record_alerts()
            await alerts.deliver_alerts(client)

    asyncio.run(once())


def of(ledger, clock, config=CONFIG, **environ):
    settings = parse(json.dumps(config), name="test")
    return BudgetAlerter(settings, ledger, clock, {"HOOK": URL, "HOOK_SECRET": "k", **environ})


def test_a_threshold_is_told_once_signed_and_in_words(ledger, hook):
    alerts = of(ledger, Noon())
    look(alerts, hook)
    look(alerts, hook)
    (request,) = hook.heard
    assert str(request.url) == URL
    message = json.loads(request.content)
    assert message["text"] == (
        "team:search has spent $80.00 (80 %) of its hard budget of $100.00 per month"
    )
    assert message["type"] == "budget.threshold_reached"
    assert (message["threshold"], message["spent_usd"], message["limit_usd"]) == (
        0.5, "80.000000000000", "100.000000000000",
    )  # fmt: skip
    signed = f"{NOON_S}.".encode() + request.content
    expected = hmac.new(b"k", signed, "sha256").hexdigest()
    assert request.headers["x-breakeven-signature"] == f"t={NOON_S},v1={expected}"


@pytest.mark.parametrize("status", [500, 302, httpx.ConnectError("no")])
def test_what_is_not_heard_is_told_again_later(ledger, hook, status, caplog):
    clock = Noon()
    alerts = of(ledger, clock)
    hook.status = status
    look(alerts, hook)
    look(alerts, hook)
    assert len(hook.heard) == 1
    assert "s3cret" not in caplog.text
    hook.status = 204
    clock.at_us += LEASE_US
    look(alerts, hook)
    clock.at_us += 10 * LEASE_US
    look(alerts, hook)
    assert len(hook.heard) == 2
    ids = {json.loads(request.content)["id"] for request in hook.heard}
    assert len(ids) == 1


def test_without_a_webhook_the_log_says_it(ledger, hook, caplog):
    with caplog.at_level(logging.WARNING):
        look(of(ledger, Noon(), HOOK=""), hook)
    assert hook.heard == []
    assert "team:search has spent $80.00" in caplog.text


def test_slack_is_told_the_text_alone(ledger, hook):
    config = {**CONFIG, "alerts": {**CONFIG["alerts"], "form": "slack"}}
    settings = parse(json.dumps(config), name="test")
    look(BudgetAlerter(settings, ledger, Noon(), {"HOOK": URL}), hook)
    assert json.loads(hook.heard[0].content) == {
        "text": "team:search has spent $80.00 (80 %) of its hard budget of $100.00 per month"
    }


def test_slack_reads_no_mention_or_link_out_of_a_name_that_a_client_chose() -> None:
    name = "tag:run=<!channel> <https://evil.example|reset & go>"
    alert = Alert(f"{name}@day", name, "day", 0, 86_400, 800_000, USD, USD, hard=True, reached_us=1)
    text = module.slack_message(alert)["text"]
    told = "tag:run=&lt;!channel&gt; &lt;https://evil.example|reset &amp; go&gt; has spent"
    assert text.startswith(told)


def test_without_a_secret_nothing_is_signed(ledger, hook):
    look(of(ledger, Noon(), HOOK_SECRET=""), hook)
    assert "x-breakeven-signature" not in hook.heard[0].headers


def test_a_budget_of_nothing_is_all_spent():
    alert = Alert("team:a@day", "team:a", "day", 0, 86_400, 1_000_000, 0, 0, False, 7_000_000)
    assert alert_text(alert) == "team:a has spent $0.00 (100 %) of its soft budget of $0.00 per day"
    assert message_of(alert)["window_end"] == "1970-01-02T00:00:00Z"
    assert message_of(alert)["reached_at"] == "1970-01-01T00:00:07Z"


def test_a_line_s_end_of_the_variables_is_no_part_of_either(ledger, hook):
    look(of(ledger, Noon(), HOOK=f"{URL}\n", HOOK_SECRET="k\r\n"), hook)
    (request,) = hook.heard
    assert str(request.url) == URL
    signed = hmac.new(b"k", f"{NOON_S}.".encode() + request.content, "sha256").hexdigest()
    assert request.headers["x-breakeven-signature"] == f"t={NOON_S},v1={signed}"


def test_an_address_that_is_none_is_refused_and_not_quoted(ledger):
    with pytest.raises(ConfigError, match="webhook_env") as raised:
        of(ledger, Noon(), HOOK="http://127.0.0.1:port99/T")
    assert "port99" not in str(raised.value)


def test_an_answer_that_never_ends_is_heard_by_its_head(ledger):
    async def drip():
        yield b"x"
        await asyncio.sleep(3600)

    heard = []

    def answer(request):
        heard.append(request)
        return httpx.Response(200, content=drip())

    alerts = of(ledger, Noon())
    look(alerts, answer)
    look(alerts, answer)
    assert len(heard) == 1


async def test_budgets_are_looked_at_again_after_a_commit_and_not_before(ledger, monkeypatch):
    looks, turns, turned = [], [], asyncio.Event()
    monkeypatch.setattr(module, "record_alerts", lambda *_, **__: looks.append(len(turns)) or [])

    async def tick(_seconds):
        turns.append(None)
        turned.set()
        await asyncio.sleep(0.005)

    monkeypatch.setattr(module, "next_tick", tick)
    running = asyncio.create_task(of(ledger, Noon()).run())

    async def until(check) -> None:
        async with asyncio.timeout(20):
            while not check():
                turned.clear()
                await turned.wait()

    # Of commits so close that the files' times cannot tell, more than one look is made.
    await until(lambda: looks and len(turns) >= looks[-1] + 60)
    before = len(looks)
    with ledger.begin() as connection:
        connection.execute(update(orm.BudgetWindowRow).values(spent_pusd=90 * USD))
    await until(lambda: len(looks) > before and len(turns) >= looks[-1] + 60)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def mailed_to(mailbox, *to, **alerts):
    server = f"127.0.0.1:{mailbox.server_address[1]}"
    mail = {"server": server, "sender": "books@example.com", "tls": "none"}
    return CONFIG | {"mail": mail, "alerts": {"mail_to": to, **alerts}}


def test_a_threshold_is_mailed_in_words_once(ledger, hook, mailbox):
    alerts = of(ledger, Noon(), mailed_to(mailbox, "fay@example.com", "nobody@example.com"))
    look(alerts, hook)
    look(alerts, hook)
    words = "team:search has spent $80.00 (80 %) of its hard budget of $100.00 per month"
    assert mailbox.got.count(words) == 1
    assert "To: fay@example.com, nobody@example.com" in mailbox.got
    assert hook.heard == []


def test_a_place_that_has_it_is_not_told_again_for_the_other(ledger, hook, mailbox):
    clock = Noon()
    alerts = of(ledger, clock, mailed_to(mailbox, "fay@example.com", **CONFIG["alerts"]))
    hook.status = 500
    look(alerts, hook)
    assert (len(hook.heard), mailbox.got.count("To: fay@example.com")) == (1, 1)
    clock.at_us += 10 * LEASE_US
    hook.status = 200
    for _ in range(2):
        look(alerts, hook)
    assert (len(hook.heard), mailbox.got.count("To: fay@example.com")) == (2, 1)
    assert alerts._heard == {}


def test_mail_that_no_server_takes_is_tried_again(ledger, hook, mailbox, caplog):
    clock = Noon()
    config = mailed_to(mailbox, "nobody@example.com")
    alerts = of(ledger, clock, config | {"mail": config["mail"] | {"server": "127.0.0.1:1"}})
    look(alerts, hook)
    assert "alert mail failed error=the mail server rejected it" in caplog.text
    clock.at_us += 10 * LEASE_US
    look(of(ledger, clock, mailed_to(mailbox, "fay@example.com")), hook)
    assert "To: fay@example.com" in mailbox.got


def test_one_jump_past_every_threshold_is_one_message(ledger, hook, mailbox, caplog):
    """Red before: three webhooks, three mails and three lines of the log with one text."""
    clock = Noon()
    config = mailed_to(mailbox, "fay@example.com", **CONFIG["alerts"])
    config["budgets"] = [{"scope": "team:search", "usd": 100, "alert_at": [0.5, 0.7, 0.8]}]
    alerts = of(ledger, clock, config)
    hook.status = 500
    look(alerts, hook)
    hook.status = 200
    for _ in range(3):
        clock.at_us += 10 * LEASE_US
        look(alerts, hook)
    assert [json.loads(request.content)["threshold"] for request in hook.heard] == [0.8, 0.8]
    assert mailbox.got.count("To: fay@example.com") == 1
    assert caplog.text.count("team:search has spent $80.00 (80 %)") == 1
    assert alerts._heard == {}
    with ledger.begin() as connection:
        told = connection.execute(select(orm.BudgetAlertRow.told_us)).scalars().all()
        connection.execute(update(orm.BudgetWindowRow).values(spent_pusd=90 * USD))
    assert len(told) == 3
    assert None not in told
    config["budgets"][0]["alert_at"].append(0.9)
    look(of(ledger, clock, config), hook)
    assert json.loads(hook.heard[-1].content)["threshold"] == 0.9, "what is new is told"


def test_alerts_that_no_server_mails_are_refused():
    with pytest.raises(ConfigError, match=r"alerts\.mail_to: needs a mail server"):
        parse(json.dumps(CONFIG | {"alerts": {"mail_to": ["fay@example.com"]}}), name="test")
