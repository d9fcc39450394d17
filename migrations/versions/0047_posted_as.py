"""How an invoice was posted: whether it says all that is owed for its days, or a part.

Of those that were posted before, what was posted says it: a part adds its lines as they are.
"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("invoices", sa.Column("posted_as", sa.String(), nullable=True))
    connection = op.get_bind()
    found = connection.execute(
        sa.text(
            "SELECT id, party, first_day, last_day FROM invoices"
            " WHERE posted_us IS NOT NULL ORDER BY posted_us, id"
        )
    ).all()
    for place, (number, party, first, last) in enumerate(found):
        shares = any(
            row[1] == party and row[2] <= last and row[3] >= first for row in found[:place]
        )
        word = "whole"
        if shares:
            word = "adds" if _adds(connection, number) else "replaces"
        connection.execute(
            sa.text("UPDATE invoices SET posted_as = :word WHERE id = :number"),
            {"word": word, "number": number},
        )


def downgrade() -> None:
    op.drop_column("invoices", "posted_as")


def _adds(connection: sa.Connection, number: int) -> bool:
    """Whether what was posted of each day is what its lines say, whatever was booked."""
    lines: dict[str, int] = {}
    items = "SELECT day, amount_pusd FROM invoice_items WHERE invoice_id = :number"
    for day, pusd in connection.execute(sa.text(items), {"number": number}):
        lines[str(day)] = lines.get(str(day), 0) + int(pusd)
    entries = (
        "SELECT entry_id, amount_pusd FROM postings"
        " WHERE entry_id LIKE :entry AND account LIKE 'adjustments:%'"
    )
    rows = connection.execute(sa.text(entries), {"entry": f"invoice:{number}:%"})
    posted: dict[str, int] = {}
    for entry_id, pusd in rows:
        day = str(entry_id).rpartition(":")[2]
        posted[day] = posted.get(day, 0) + int(pusd)
    return {day: pusd for day, pusd in lines.items() if pusd} == posted
