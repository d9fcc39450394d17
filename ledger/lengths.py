"""How long answers were, by model and team: what a gateway that has just started knows of them.

Only what targets reported of finished answers. Several choices of one request count as one long
answer: the row does not say how many there were, and too long is the safe side.
"""

from typing import NamedTuple

from sqlalchemy import Engine, func, select

from ledger.orm.tables import Attempt
from ledger.spans import INPUT_TOKENS, OUTPUT_TOKENS

ATTEMPTS = 4000  # of the latest ones; what is learned from more has faded


class Length(NamedTuple):
    model: str
    team_id: str
    prompt_tokens: int
    output_tokens: int
    cut: bool  # a limit ended it


def recent_lengths(engine: Engine, attempts: int = ATTEMPTS) -> list[Length]:
    """Among the latest attempts, the oldest first."""
    latest = select(Attempt.seq).order_by(Attempt.seq.desc()).limit(attempts).subquery()
    query = (
        select(
            Attempt.model,
            Attempt.team_id,
            INPUT_TOKENS,
            OUTPUT_TOKENS,
            func.coalesce(Attempt.finish_reason, "") == "length",
        )
        .join(latest, latest.c.seq == Attempt.seq)
        .where(Attempt.status == "finished", Attempt.basis == "reported")
        .order_by(Attempt.seq)
    )
    with engine.connect() as connection:
        return [Length(*row[:-1], cut=bool(row[-1])) for row in connection.execute(query)]
