"""Add host names by state directory, and the process that writes for each."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("place", sa.String(), nullable=True),
        sa.Column("said_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_hosts")),
        sa.UniqueConstraint("holder", name=op.f("uq_hosts_holder")),
    )


def downgrade() -> None:
    op.drop_table("hosts")
