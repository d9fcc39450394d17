"""Add imports of prices: author, time, source and versions."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add nullable columns without defaults, so that no row is rewritten."""
    op.create_table(
        "price_imports",
        sa.Column("seq", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("book", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=True),
        sa.Column("read_on", sa.String(), nullable=True),
        sa.Column("stored", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_price_imports"),
    )
    op.add_column("price_versions", sa.Column("recorded_by", sa.String(), nullable=True))
    op.add_column("price_versions", sa.Column("import_seq", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("price_versions") as batch:
        batch.drop_column("import_seq")
        batch.drop_column("recorded_by")
    op.drop_table("price_imports")
