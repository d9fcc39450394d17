"""Whether a connection to a PostgreSQL database waits for a lock."""

from sqlalchemy import Engine, text


def is_somebody_waiting(engine: Engine) -> bool:
    with engine.connect() as connection:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database IN "
        query += "(SELECT oid FROM pg_database WHERE datname = current_database())"
        return connection.execute(text(query)).scalar_one() > 0
