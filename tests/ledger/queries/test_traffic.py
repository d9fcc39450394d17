"""Recorded traffic comes back in order, answered requests alone."""

from sqlalchemy import insert, select

from ledger.journals.records import ComparedCost, TokenCounts
from ledger.orm.tables import AttemptRow, KeyRow, OrganisationRow, TeamRow
from ledger.queries.traffic import answers_before, recorded_requests, refused_requests
from ledger.spans import Scope

START_US = 1_780_000_000_000_000
SPAN = Scope(START_US, START_US + 60_000_000)


def test_answered_conversations_in_the_order_of_time(engine, opened, settled, refused, write):
    write(
        engine,
        opened(2, opened_us=START_US + 2_000_000), settled(2),
        opened(1, opened_us=START_US + 1_000_000), settled(1),
        opened(3, opened_us=START_US + 3_000_000),
        opened(4, opened_us=START_US + 4_000_000, kind="embedding"), settled(4),
        opened(5, opened_us=SPAN.end_us), settled(5),
        refused(6),
    )  # fmt: skip
    with engine.connect() as connection:
        found = list(recorded_requests(connection, SPAN))
        everything = refused_requests(connection, Scope(0, 2**62))
        none = refused_requests(connection, Scope(0, 1))
    assert [finding.opened_us - START_US for finding in found] == [1_000_000, 2_000_000]
    first = found[0]
    assert first.input_tokens > 0 < first.output_tokens
    assert first.team == "search"
    assert (everything, none) == (1, 0)
    assert not any(finding.inside for finding in found)


def test_whose_key_may_not_leave_is_told(engine, opened, settled, write):
    write(engine, opened(1, opened_us=START_US + 1_000_000), settled(1))
    with engine.begin() as connection:
        known = connection.execute(select(AttemptRow.key_id, AttemptRow.team_id)).one()
        connection.execute(insert(OrganisationRow).values(id="o", name="o", created_us=0))
        team = insert(TeamRow).values(id=known.team_id, org_id="o", name="t", created_us=0)
        connection.execute(team)
        connection.execute(
            insert(KeyRow).values(
                id=known.key_id, team_id=known.team_id, org_id="o", name="k", secret_hash=b"h" * 32,
                scopes=["inference"], residency="internal_only", created_us=0,
            )
        )  # fmt: skip
    with engine.connect() as connection:
        (found,) = recorded_requests(connection, SPAN)
    assert found.inside


def test_what_was_cached_is_told_and_what_a_comparator_would_have_had(
    engine, opened, settled, write
):
    tokens = TokenCounts(input=60, cached=40, output=5)
    compared = (ComparedCost("a/b", 1, 7, cached_tokens=90), ComparedCost("c/d", 1, 9))
    own = {"backend": "own", "pool": "p", "target": "pool:p/0"}
    write(
        engine,
        opened(1, opened_us=START_US + 1, decision=b"kept"),
        settled(1, tokens=tokens, compared=compared),
        opened(2, opened_us=START_US + 2, **own), settled(2, tokens=tokens, compared=compared),
        opened(3, opened_us=START_US + 3, **own), settled(3, tokens=tokens),
    )  # fmt: skip
    with engine.connect() as connection:
        found = list(recorded_requests(connection, SPAN))
        before = answers_before(connection, START_US + 3, most=1)
    assert [each.cached for each in found] == [40, 90, 0]
    assert found[0].decision == b"kept"
    (told,) = before
    assert (told.input_tokens, told.output_tokens, told.cut) == (100, 5, False)
