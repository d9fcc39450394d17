"""Output lengths by model and team, from which a gateway that has just started estimates.

Only undisputed usage of finished answers counts. Several choices of one request count as one long
answer: the row does not store their number, and an estimate that is too long is safe.
"""

from typing import NamedTuple

from sqlalchemy import Engine, func, select

from ledger.orm.tables import AttemptRow
from ledger.spans import INPUT_TOKENS, OUTPUT_TOKENS

ATTEMPTS = 4000  # latest attempts; older lengths have no weight


class AnswerLength(NamedTuple):
    model: str
    team_id: str
    prompt_tokens: int
    output_tokens: int
    cut: bool  # a limit ended it
    opened_us: int = 0


def recent_lengths(engine: Engine, attempts: int = ATTEMPTS) -> list[AnswerLength]:
    """Return the output lengths among the latest `attempts` attempts, oldest first."""
    latest = select(AttemptRow.seq).order_by(AttemptRow.seq.desc()).limit(attempts).subquery()
    query = (
        select(
            AttemptRow.model,
            AttemptRow.team_id,
            INPUT_TOKENS,
            OUTPUT_TOKENS,
            func.coalesce(AttemptRow.finish_reason, "") == "length",
            AttemptRow.opened_us,
        )
        .join(latest, latest.c.seq == AttemptRow.seq)
        .where(
            AttemptRow.status == "finished",
            AttemptRow.basis == "reported",
            func.coalesce(AttemptRow.flag, "") != "disputed",
        )
        .order_by(AttemptRow.seq)
    )
    with engine.connect() as connection:
        rows = connection.execute(query)
        return [AnswerLength(*row[:4], cut=bool(row[4]), opened_us=row[5]) for row in rows]
