"""Drop rates from capacity rows; readers compute them from measurements and traffic."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_RATES = ("slo_input_tokens_per_s", "slo_output_tokens_per_s")


def upgrade() -> None:
    with op.batch_alter_table("capacity") as batch:
        for name in _RATES:
            batch.drop_column(name)


def downgrade() -> None:
    """Add the rate columns again, empty: old rates depended on one shape of traffic."""
    with op.batch_alter_table("capacity") as batch:
        for name in _RATES:
            batch.add_column(sa.Column(name, sa.Double(), nullable=True))
