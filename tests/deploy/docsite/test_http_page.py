"""The page of the HTTP API has every route, each with its scope and a sentence."""

import pytest

from deploy.docsite.command_tree import commands
from deploy.docsite.http_page import ABOUT, about, text
from gateway.control.operations import OPERATIONS, ROUTES
from gateway.worker.openapi_bodies import INFERENCE_PATHS
from gateway.worker.unserved_paths import UNSERVED


def test_every_route_is_on_the_page() -> None:
    shown = text()
    assert [name for name in ROUTES if f"`{name}`" not in shown] == []
    assert [path for path in INFERENCE_PATHS if f"`POST {path}`" not in shown] == []
    assert [item.reason for item in UNSERVED if item.reason.replace("|", "\\|") not in shown] == []


def test_every_operation_names_a_command_that_exists() -> None:
    known = {" ".join(entry.words) for entry in commands()}
    named = {operation.command for operation in OPERATIONS if operation.command}
    assert named - known == set()


def test_every_sentence_is_used() -> None:
    paths = [name.partition(" ")[2] for name in ROUTES]
    used = {about(path) for path in paths if path not in INFERENCE_PATHS
            and not any(path == f"/v1/organization{each.path}" for each in OPERATIONS)}  # fmt: skip
    assert set(ABOUT.values()) == used


def test_a_path_without_a_sentence_is_an_error() -> None:
    with pytest.raises(KeyError):
        about("/v3/new")
