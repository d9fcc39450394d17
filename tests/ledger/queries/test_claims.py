"""Claims beyond what was held: with their team, and nobody else's."""

from ledger.orm import tables as orm
from ledger.queries.claims import ClaimTotal, claim_groups, claim_total
from ledger.queries.requests import attempts
from ledger.spans import DAY_US, EVER, Scope


def test_claims_add_up_by_team_and_model(engine, opened, settled, write) -> None:
    write(
        engine,
        opened(1), settled(1, cost_pusd=5, claimed_pusd=105),
        opened(2), settled(2, cost_pusd=5, claimed_pusd=25),
        opened(3, team_id="other"), settled(3, cost_pusd=5, claimed_pusd=6),
        opened(4), settled(4, cost_pusd=5),
        opened(5), settled(5, cost_pusd=5, claimed_pusd=4),
    )  # fmt: skip
    with engine.connect() as connection:
        groups = list(claim_groups(connection, EVER, bucket_us=DAY_US))
        assert {(group.team, group.attempts, group.surplus_pusd) for group in groups} == {
            ("search", 2, 120),
            ("other", 1, 1),
        }
        scope = Scope(EVER.start_us, EVER.end_us, "other")
        assert [group.team for group in claim_groups(connection, scope, bucket_us=DAY_US)] == [
            "other"
        ]
        assert claim_total(connection, EVER) == ClaimTotal(3, 121)
        assert claim_total(connection, scope) == ClaimTotal(1, 1)
        assert claim_total(connection, Scope(0, 1)) == ClaimTotal(0, 0)
        claimed = {row.attempt_id: row.claimed_pusd for row in attempts(connection, EVER)}
        assert claimed == {"r1.1": 105, "r2.1": 25, "r3.1": 6, "r4.1": None, "r5.1": None}
        flags = connection.execute(orm.AttemptRow.__table__.select()).mappings()
        assert {row["attempt_id"]: row["flag"] for row in flags} == {
            "r1.1": "over_bound", "r2.1": "over_bound", "r3.1": "over_bound",
            "r4.1": None, "r5.1": None,
        }  # fmt: skip
