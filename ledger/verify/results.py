"""Stored results of `ledger verify`, which the dashboard shows.

They show who ran a verification and when, but prove nothing: a person with write access to the
ledger can write them. The page can therefore run the checks itself.
"""

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Engine, insert, select

from ledger.orm.seals import VerificationRow
from ledger.verify.checks import Finding, VerifyResult

FINDINGS_KEPT = 50


@dataclass(frozen=True, slots=True)
class VerificationRun:
    """One run. `findings` are the first of `found` findings."""

    at_us: int
    actor: str
    checks: tuple[str, ...]
    findings: tuple[Finding, ...]
    found: int
    disputed: int

    @property
    def is_clean(self) -> bool:
        return not self.found


def record_verification(engine: Engine, result: VerifyResult, *, actor: str, at_us: int) -> None:
    row = {
        "at_us": at_us,
        "actor": actor,
        "checks": list(result.checks),
        "findings": [asdict(finding) for finding in result.findings[:FINDINGS_KEPT]],
        "found": len(result.findings),
        "disputed": result.disputed,
    }
    with engine.begin() as connection:
        connection.execute(insert(VerificationRow), [row])


def verifications(connection: Connection, limit: int) -> list[VerificationRun]:
    """Return the runs, newest first."""
    table = VerificationRow
    query = select(
        table.at_us, table.actor, table.checks, table.findings, table.found, table.disputed
    )
    return [
        VerificationRun(
            at_us, actor, tuple(checks), tuple(Finding(**finding) for finding in findings), *counts
        )
        for at_us, actor, checks, findings, *counts in connection.execute(
            query.order_by(table.at_us.desc(), table.id.desc()).limit(limit)
        )
    ]
