"""Add encrypted answers and conversations to continue from, and their bytes by team.

A role that only reads the ledger, such as the dashboard's, may have a default privilege on new
tables. It is revoked for these tables.
"""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

TABLES = ("stored_objects", "stored_bytes")
# Roles that read a table and do not write it: the owner and the gateway's role write.
READERS = """
SELECT DISTINCT pg_get_userbyid(acl.grantee) FROM pg_class, aclexplode(relacl) AS acl
WHERE oid = to_regclass(:name) AND acl.privilege_type = 'SELECT' AND acl.grantee NOT IN (
    SELECT writer.grantee FROM aclexplode(relacl) AS writer WHERE writer.privilege_type = 'INSERT'
) AND acl.grantee <> 0
"""


def upgrade() -> None:
    serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "stored_objects",
        sa.Column("seq", serial, autoincrement=True, nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("residency", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=True),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("lease_us", sa.BigInteger(), nullable=True),
        sa.Column("cancel_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_stored_objects")),
        sa.UniqueConstraint("team_id", "id", name=op.f("uq_stored_objects_team_id_id")),
    )
    for columns in (["team_id", "kind", "seq"], ["team_id", "parent", "seq"], ["expires_us"]):
        name = f"ix_stored_objects_{'_'.join(columns)}"
        op.create_index(op.f(name), "stored_objects", columns)
    op.create_table(
        "stored_bytes",
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", name=op.f("pk_stored_bytes")),
    )
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for table in TABLES:
            readers = connection.execute(sa.text(READERS), {"name": table}).scalars().all()
            for reader in readers:
                role = connection.dialect.identifier_preparer.quote(reader)
                given = {"name": table, "role": role}
                connection.execute(sa.DDL("REVOKE SELECT ON %(name)s FROM %(role)s", context=given))


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
