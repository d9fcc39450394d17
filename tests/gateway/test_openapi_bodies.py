"""The bodies' schemas: what is accepted and refused by them is by the gateway (see tests/sdk)."""

from gateway.api import HOT
from gateway.openapi_bodies import bodies


def test_every_hot_path_has_one() -> None:
    found = bodies(8)
    assert found.keys() == HOT
    assert all("model" in body["required"] for body in found.values())


def test_bounds_are_those_of_the_configuration() -> None:
    found = bodies(3)["/v1/completions"]["properties"]
    assert found["n"]["maximum"] == 3
    lists = [one for one in found["prompt"]["anyOf"] if "maxItems" in one]
    assert [one["maxItems"] for one in lists] == [3, 3]
