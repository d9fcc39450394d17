"""A LiteLLM database becomes keys that stay valid and spending that is exact, and nothing else."""

import hashlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import event, text

from gateway.config.litellm_notes import ImportLoss
from gateway.control.litellm.database_import import (
    import_history,
    import_keys,
    survey_source,
)
from gateway.control.litellm.source_database import COLUMNS, SourceDatabase, SourceError
from ledger.database import make_engine, migrate
from ledger.identity.keychanges import ChangeAuthor
from ledger.identity.keyring import KeyRing
from ledger.identity.keys import load_pepper, revoke_key
from ledger.orm.tables import AttemptRow, KeyRow, PostingRow, SpendHistoryRow
from ledger.spend_history import history_totals

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOW_US = round(NOW.timestamp() * 1e6)
AUTHOR = ChangeAuthor("test", "imported", NOW_US)
TOKEN = "sk-abcdefghijklmnop"
FORBIDDEN = ("messages", "response", "proxy_server_request", "password", "metadata", "*")


def sha(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture
def ledger(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    migrate(url)
    engine = make_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def source(postgres_url, source_engine):
    made = SourceDatabase(postgres_url)
    yield made
    made.close()


def log(number: int, **changes: object) -> dict:
    return {
        "request_id": f"r{number}", "startTime": f"2026-11-0{1 + number % 3} 23:59",
        "api_key": sha(TOKEN), "spend": 0.1, "prompt_tokens": 10, "completion_tokens": 2,
        "model": "gpt-4o", "model_group": "chat", "custom_llm_provider": "openai",
        "team_id": "t-1", "status": "success",
        "messages": '{"secret": "do not read me"}', **changes,
    }  # fmt: skip


async def test_a_token_that_litellm_made_is_known_here_and_its_hash_opens_nothing(
    ledger, source, fill, tmp_path
) -> None:
    fill("LiteLLM_TeamTable", {"team_id": "t-1", "team_alias": "search", "models": ["chat", "x"]})
    fill(
        "LiteLLM_VerificationToken",
        {"token": sha(TOKEN), "key_alias": "web", "team_id": "t-1", "models": ["chat"],
         "user_id": "ann", "expires": NOW.replace(tzinfo=None) + timedelta(days=9)},
    )  # fmt: skip
    pepper = load_pepper(tmp_path)
    survey = survey_source(source, pepper, NOW_US)
    assert survey.plan.notes == []
    assert import_keys(ledger, survey.plan, pepper, AUTHOR)[:2] == (1, 0)
    assert import_keys(ledger, survey.plan, pepper, AUTHOR)[:2] == (0, 1)
    ring = KeyRing(ledger, tmp_path / "run", tmp_path)
    identity = await ring.lookup(TOKEN, NOW_US)
    assert identity is not None
    assert (identity.team_id, identity.models, identity.user_id) == ("search", ("chat",), "ann")
    assert ring.recall(TOKEN, NOW_US) is identity
    assert await ring.lookup(TOKEN, NOW_US + 10 * 86_400_000_000) is None
    for wrong in (
        TOKEN + "x", sha(TOKEN), f"sk-{sha(TOKEN)}", f"gw_{identity.key_id}_{sha(TOKEN)}",
        f"gw_{identity.key_id}_{TOKEN}",
    ):  # fmt: skip
        assert await ring.lookup(wrong, NOW_US) is None
    with ledger.begin() as connection:
        stored = connection.execute(KeyRow.__table__.select()).mappings().one()
        assert sha(TOKEN) not in repr(dict(stored))
        assert bytes.fromhex(sha(TOKEN)) != stored["secret_hash"]
        revoke_key(connection, identity.key_id, now_us=NOW_US)
    assert import_keys(ledger, survey.plan, pepper, AUTHOR)[:2] == (0, 1)  # it stays revoked
    fresh = KeyRing(ledger, tmp_path / "later", tmp_path)
    assert await fresh.lookup(TOKEN, NOW_US) is None
    for each in (ring, fresh):
        each.close()


def test_spending_is_exact_repeatable_and_in_no_book(ledger, source, fill, tmp_path) -> None:
    spends = [0.1, 1e-7, 0.30000000000000004, 1.5e-05, 123456.789, 2.5e-13]
    fill("LiteLLM_TeamTable", {"team_id": "t-1", "team_alias": "search"})
    fill("LiteLLM_SpendLogs", *(log(number, spend=spend) for number, spend in enumerate(spends)))
    fill("LiteLLM_SpendLogs", log(9, status="failure", spend=0, team_id=None))
    pepper = load_pepper(tmp_path)
    plan = survey_source(source, pepper, NOW_US).plan
    told: list[str] = []
    first = import_history(source, ledger, plan, pepper, told.append)
    assert told == ["2026-11-01", "2026-11-02", "2026-11-03"]
    exact = sum((Decimal(repr(spend)) * 10**12).to_integral_value() for spend in spends)
    assert first.sums.spend_pusd == exact
    with ledger.connect() as connection:
        (total,) = history_totals(connection)
        assert total.sums == first.sums
        assert (total.sums.requests, total.sums.failed) == (7, 1)
        rows = connection.execute(SpendHistoryRow.__table__.select()).all()
        (of_team,) = history_totals(connection, team="search")
        assert of_team.sums.requests == 6
        for table in (AttemptRow, PostingRow):
            assert connection.execute(table.__table__.select()).all() == []
    again = import_history(source, ledger, plan, pepper, told.append)
    assert (again.days, again.known) == (0, 3)
    with ledger.connect() as connection:
        assert connection.execute(SpendHistoryRow.__table__.select()).all() == rows
    fill("LiteLLM_SpendLogs", log(12))
    assert import_history(source, ledger, plan, pepper, told.append)[:2] == (1, 2)


def day_of(number: int, day: str, requests: int, **changes: object) -> dict:
    return {
        "id": f"d{number}", "user_id": "ann", "date": day, "api_key": sha(TOKEN),
        "model": "gpt-4o", "model_group": "chat", "custom_llm_provider": "openai",
        "prompt_tokens": 10 * requests, "completion_tokens": 2 * requests, "spend": 0.1 * requests,
        "api_requests": requests, "failed_requests": 1, **changes,
    }  # fmt: skip


def test_days_whose_rows_were_pruned_are_kept_as_daily_sums_and_none_twice(
    ledger, source, fill, tmp_path
) -> None:
    """The only history of a proxy that keeps its rows for a month was left behind."""
    fill("LiteLLM_TeamTable", {"team_id": "t-1", "team_alias": "search"})
    fill(
        "LiteLLM_DailyUserSpend",
        day_of(1, "2026-10-01", 4, spend=0.30000000000000004),
        day_of(2, "2026-10-01", 3, api_key="other", model_group=None),
        day_of(3, "2026-11-01", 2),  # both of its rows are there
        day_of(4, "2026-11-02", 5),  # one of its rows is left
    )
    team = {"date": "2026-10-01", "model": "gpt-4o", "spend": 9, "api_requests": 9}
    fill(
        "LiteLLM_DailyTeamSpend",
        {"id": "t1", "team_id": "t-1", "api_key": sha(TOKEN), **team},
        {"id": "t2", "team_id": "t-1", "api_key": "other", **team},
        {"id": "t3", "team_id": "t-2", "api_key": "other", **team},
    )
    fill("LiteLLM_DailyTagSpend", {"id": "g", "tag": "x", "api_key": "other", **team})
    fill("LiteLLM_SpendLogs", log(0), log(3), log(1))
    pepper = load_pepper(tmp_path)
    survey = survey_source(source, pepper, NOW_US)
    assert (survey.days, survey.daily_days, survey.requests) == (3, 2, 14)
    first = import_history(source, ledger, survey.plan, pepper, lambda _: None)
    assert first.sums == (14, 3, 140, 28, 1_300_000_000_000)
    assert import_history(source, ledger, survey.plan, pepper, lambda _: None)[:2] == (0, 3)
    with ledger.connect() as connection:
        rows = connection.execute(SpendHistoryRow.__table__.select()).all()
    cells = {(row.day, row.team, row.user, row.model, row.requests) for row in rows}
    assert cells == {
        ("2026-10-01", "search", "ann", "chat", 4), ("2026-10-01", "", "ann", "gpt-4o", 3),
        ("2026-11-01", "search", "", "chat", 2), ("2026-11-02", "", "ann", "chat", 5),
    }  # fmt: skip


def test_rows_that_are_pruned_later_take_nothing_from_what_is_kept(
    ledger, source, source_engine, fill, tmp_path
) -> None:
    """A second import replaced a day by what was left of it."""
    fill("LiteLLM_SpendLogs", *(log(number) for number in range(6)))
    pepper = load_pepper(tmp_path)
    plan = survey_source(source, pepper, NOW_US).plan
    first = import_history(source, ledger, plan, pepper, lambda _: None)
    with source_engine.begin() as connection:
        connection.execute(text("""DELETE FROM "LiteLLM_SpendLogs" WHERE request_id < 'r4'"""))
    assert import_history(source, ledger, plan, pepper, lambda _: None).days == 0
    with ledger.connect() as connection:
        (total,) = history_totals(connection)
    assert total.sums == first.sums


def test_a_daily_sum_of_no_day_is_named(ledger, source, fill, tmp_path) -> None:
    fill("LiteLLM_DailyUserSpend", day_of(1, "yesterday", 1))
    with pytest.raises(SourceError, match="`yesterday` is not a date such as"):
        survey_source(source, load_pepper(tmp_path), NOW_US)


def test_an_import_that_broke_off_goes_on_with_the_day_that_lacks(
    ledger, source, fill, tmp_path
) -> None:
    fill("LiteLLM_SpendLogs", *(log(number) for number in range(6)))
    pepper = load_pepper(tmp_path)
    plan = survey_source(source, pepper, NOW_US).plan

    def break_off(day: str) -> None:
        if day.endswith("02"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_history(source, ledger, plan, pepper, break_off)
    told: list[str] = []
    import_history(source, ledger, plan, pepper, told.append)
    assert told == ["2026-11-03"]


def test_only_named_columns_are_read_in_transactions_that_cannot_write(
    ledger, source, fill, tmp_path
) -> None:
    fill("LiteLLM_SpendLogs", *(log(number) for number in range(3)))
    fill("LiteLLM_DailyUserSpend", day_of(1, "2026-10-01", 4))
    fill("LiteLLM_UserTable", {"user_id": "ann", "password": "do not read me"})
    said: list[str] = []
    event.listen(source._engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    pepper = load_pepper(tmp_path)
    plan = survey_source(source, pepper, NOW_US).plan
    import_history(source, ledger, plan, pepper, lambda _: None)
    assert not any(f'"{word}"' in each or " * " in each for each in said for word in FORBIDDEN)
    assert all(each.startswith(("SELECT", "SET")) for each in said)
    assert not {name for names in COLUMNS.values() for name in names} & set(FORBIDDEN)
    with source.reading() as connection, pytest.raises(Exception, match="read-only"):
        connection.execute(text('DELETE FROM "LiteLLM_UserTable"'))


def test_budgets_of_members_customers_and_tags_are_losses(source, fill, tmp_path) -> None:
    """They were lost without a word: who had $5 in a team could spend without a limit."""
    assert survey_source(source, load_pepper(tmp_path), NOW_US).plan.notes == []
    fill(
        "LiteLLM_TeamMembership",
        {"user_id": "ann", "team_id": "t-1", "budget_id": "b"},
        {"user_id": "ann", "team_id": "t-2", "budget_id": "b"},
        {"user_id": "bob", "team_id": "t-1"},
    )
    fill("LiteLLM_EndUserTable", {"user_id": "c-1", "budget_id": "b"})
    survey = survey_source(source, load_pepper(tmp_path), NOW_US)
    assert [(note.place, note.loss) for note in survey.plan.notes] == [
        ("team members.budget_id", ImportLoss.BUDGETS), ("end users.budget_id", ImportLoss.BUDGETS),
    ]  # fmt: skip
    assert survey.plan.notes[0].text.startswith("2 have budgets of their own")
    assert survey.fails(())
    assert not survey.fails((ImportLoss.BUDGETS,))


def test_a_database_of_somebody_else_is_told(postgres_url) -> None:
    source = SourceDatabase(postgres_url)
    with pytest.raises(SourceError, match="name the database of a LiteLLM proxy"):
        survey_source(source, b"p" * 32, NOW_US)
    source.close()
    with pytest.raises(SourceError, match="PostgreSQL"):
        SourceDatabase("sqlite:///x.db")
    gone = SourceDatabase("postgresql://nobody:pass-word@127.0.0.1:1/x")
    with pytest.raises(SourceError, match="cannot read the LiteLLM database") as told:
        survey_source(gone, b"p" * 32, NOW_US)
    assert "pass-word" not in str(told.value)
