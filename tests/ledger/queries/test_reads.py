"""One namespace over every read, and nothing that writes."""

import ast
import inspect

from ledger import spans as queries_scope
from ledger.queries import attempts as queries_attempts
from ledger.queries import fleet as queries_fleet
from ledger.queries import health as queries_health
from ledger.queries import load as queries_load
from ledger.queries import reads as queries
from ledger.queries import requests as queries_requests

PARTS = (
    queries_attempts, queries_fleet, queries_health, queries_load, queries_requests, queries_scope,
)  # fmt: skip


def test_every_public_read_is_in_the_namespace() -> None:
    functions = {
        name
        for part in PARTS[:-1]
        for name, member in inspect.getmembers(part, inspect.isfunction)
        if member.__module__ == part.__name__ and not name.startswith("_")
    }
    assert functions <= set(queries.__all__)
    assert set(queries.__all__) <= set(dir(queries))


def test_reads_only() -> None:
    writing = {"insert", "update", "delete", "begin", "commit", "add", "merge"}
    for part in PARTS:
        tree = ast.parse(inspect.getsource(part))
        called = {
            node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        }
        assert not called & writing, part.__name__
