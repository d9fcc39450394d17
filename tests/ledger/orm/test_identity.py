"""A key cannot belong to a team, organisation or user that does not exist."""

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from ledger.orm.identity import KeyRow, OrganisationRow, TeamRow

KEY = {"id": "k", "secret_hash": b"h", "name": "n", "scopes": [], "created_us": 0}


@pytest.mark.parametrize(
    "owners",
    [
        {"org_id": "acme", "team_id": "nobody"},
        {"org_id": "nobody", "team_id": "search"},
        {"org_id": "acme", "team_id": "search", "user_id": "nobody"},
    ],
)
def test_owners_must_exist(engine, owners):
    with engine.begin() as connection:
        connection.execute(
            insert(OrganisationRow), [{"id": "acme", "name": "Acme", "created_us": 0}]
        )
        connection.execute(
            insert(TeamRow), [{"id": "search", "org_id": "acme", "name": "Search", "created_us": 0}]
        )
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(KeyRow), [{**KEY, **owners}])
