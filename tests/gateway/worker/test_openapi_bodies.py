"""The bodies' schemas: what is accepted and refused by them is by the gateway (see tests/sdk)."""

from gateway.request.inference_api import HOT
from gateway.worker.openapi_bodies import INFERENCE_PATHS


def test_every_hot_path_has_one() -> None:
    assert INFERENCE_PATHS.keys() == HOT
    bodies = [described.body(8) for described in INFERENCE_PATHS.values()]
    assert all("model" in body["properties"] for body in bodies)
    unnamed = [body for body in bodies if "model" not in body["required"]]
    assert len(unnamed) == 1  # a moderation may leave it to the default


def test_bounds_are_those_of_the_configuration() -> None:
    found = INFERENCE_PATHS["/v1/completions"].body(3)["properties"]
    assert found["n"]["maximum"] == 3
    lists = [item for item in found["prompt"]["anyOf"] if "maxItems" in item]
    assert [list_["maxItems"] for list_ in lists] == [3, 3]
