"""A what-if of a gateway elsewhere: asked for, waited for, and told as one of this host."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from gateway.admin import elsewhere, remote
from gateway.cli import simulated
from gateway.cli.app import app

PATH = "/v1/organization/policies/simulate"
LOOSE = "policies: [{name: loose}]\n"
DOCUMENT = {
    "traffic": {"requests": 9, "seconds": 8.0, "source": "ledger, last-7-days", "form": "ledger",
                "left_out": 0, "times": 2.0, "cut": True},
    "engines": {}, "apis": {}, "results": [],
}  # fmt: skip


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A gateway elsewhere: what it was asked, and the states that it tells one after the other."""
    asked: list[httpx.Request] = []
    states = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.method == "POST":
            return httpx.Response(200, json={"job": "j1", "limit_s": 600.0})
        return httpx.Response(200, json=states.pop(0))

    real = httpx.Client
    monkeypatch.setattr(
        remote.httpx, "Client",
        lambda **given: real(transport=httpx.MockTransport(handle), **given),
    )  # fmt: skip
    monkeypatch.setattr(simulated, "LOOK_S", 0.0)
    monkeypatch.setenv(elsewhere.API_KEY, "gw_a_b")
    monkeypatch.setenv(elsewhere.GATEWAY, "https://there")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.yaml").write_text(LOOSE)
    return asked, states


def state(name: str, **more) -> dict:
    now = {"doing": "plays new.yaml", "done": 5, "of": 9}
    return {"state": name, "progress": now, "result": None, "fault": None, **more}


def simulate(*words: str):
    return CliRunner().invoke(app, ["policy", "simulate", "--policy", "new.yaml", *words])


def test_it_is_waited_for_and_shown(there) -> None:
    asked, states = there
    states += [state("running"), state("running"), state("done", result=DOCUMENT)]
    words = ("--against", "in-force", "--ledger", "last-7-days", "--times", "2")
    answer = simulate(*words, "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout) == DOCUMENT
    sent = json.loads(asked[0].content)
    assert (asked[0].method, asked[0].url.path, len(asked)) == ("POST", PATH, 4)
    assert (sent["policies"], sent["name"]) == (LOOSE, "new.yaml")
    assert (sent["against"], sent["against_name"]) == ("in-force", "in-force")
    assert (sent["ledger"], sent["times"], sent["model"]) == ("last-7-days", 2.0, [])
    assert asked[1].url.params["job"] == "j1"


def test_what_went_wrong_there_is_one_line(there) -> None:
    there[1].append(state("failed", fault="there is no model `x`"))
    answer = simulate("--ledger", "last-7-days")
    assert answer.exit_code == 1
    assert "there is no model `x`" in answer.stderr


@pytest.mark.parametrize("words", [("--trace", "trace.csv"), ()])
def test_a_file_of_traffic_stays_here(there, words) -> None:
    answer = simulate(*words)
    assert answer.exit_code == 1
    assert "knows its own traffic alone" in answer.stderr
    assert there[0] == []
