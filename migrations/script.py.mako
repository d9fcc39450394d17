"""${message}

Workers of the version before keep writing while this runs: add, backfill, and only remove what
no running version uses.
"""

import sqlalchemy as sa
from alembic import op

from ledger import orm_types

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
