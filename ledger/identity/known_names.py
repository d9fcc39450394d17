"""Names of the ledger's keys and their owners, by kind of scope."""

from sqlalchemy import Engine, select

from ledger.orm.identity import KeyRow, OrganisationRow, TeamRow, UserRow


def known_names(engine: Engine) -> dict[str, frozenset[str]]:
    """Return organisations, teams, users, key ids and tags. Kinds without names are left out.

    A tag is listed as `NAME` and as `NAME=VALUE`.
    """
    with engine.connect() as connection:
        found = {
            kind: set(connection.scalars(select(column)))
            for kind, column in (
                ("org", OrganisationRow.id),
                ("team", TeamRow.id),
                ("user", UserRow.id),
                ("key", KeyRow.id),
            )
        }
        tags = [row or {} for row in connection.scalars(select(KeyRow.tags))]
    found["tag"] = {form for each in tags for name, value in each.items()
                    for form in (name, f"{name}={value}")}  # fmt: skip
    return {kind: frozenset(names) for kind, names in found.items() if names}
