"""A PostgreSQL with LiteLLM's tables, as far as they are read, and more that is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text


@pytest.fixture
def source_engine(postgres_url: str) -> Iterator[Engine]:
    url = postgres_url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in (Path(__file__).parent / "tables.sql").read_text().split(";\n"):
            if statement.strip():
                connection.execute(text(statement))
    yield engine
    engine.dispose()


@pytest.fixture
def fill(source_engine: Engine):
    """`fill("LiteLLM_TeamTable", {...}, ...)`: rows of a table."""

    def fill_table(table: str, *rows: dict) -> None:
        with source_engine.begin() as connection:
            for row in rows:
                names = ", ".join(f'"{name}"' for name in row)
                values = ", ".join(f":{name}" for name in row)
                connection.execute(text(f'INSERT INTO "{table}" ({names}) VALUES ({values})'), row)

    return fill_table
