"""`breakeven policy simulate`: figures as table, JSON and page; every mistake one clear line."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.control.admin import gateway_address, remote

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [pool:chat, openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}}}
pools:
  chat:
    engine: {{kind: vllm, endpoints: ["http://127.0.0.1:9/v1"]}}
    gpu: {{type: H100, usd_per_hour: 3}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
policies: [{{name: tight, slo: {{ttft_ms: 500, tpot_ms: 50}}}}]
"""
LOOSE = "policies: [{name: loose, slo: {ttft_ms: 5000, tpot_ms: 90}}]\n"
TRACE = "timestamp_s,input_tokens,output_tokens\n" + "".join(
    f"{0.05 * number},{200 + 97 * number % 900},{20 + 31 * number % 200}\n" for number in range(200)
)
ENGINE = ("--engine", "chat=h100-llama-3.1-8b-fp8")


@pytest.fixture
def simulate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "breakeven.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    (tmp_path / "new.yaml").write_text(LOOSE)
    (tmp_path / "trace.csv").write_text(TRACE)

    def run(*words: str):
        return CliRunner().invoke(app, ["policy", "simulate", *words])

    return run


def test_two_sets_as_json_and_page(simulate, tmp_path) -> None:
    words = ("--policy", "new.yaml", "--against", "in-force", "--trace", "trace.csv", *ENGINE)
    answer = simulate(*words, "--times", "3", "--json", "--html", "out.html")
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert [result["policy"] for result in document["results"]] == ["new.yaml", "in-force"]
    assert [result["classes"][0]["class"] for result in document["results"]] == ["loose", "tight"]
    assert document["traffic"]["requests"] == 200
    assert document["traffic"]["seconds"] == pytest.approx(199 * 0.05 / 3)
    assert document["engines"] == {"chat": "profile h100-llama-3.1-8b-fp8, as asked for"}
    assert document["disagreement"]["requests"] == 200
    assert "200/200" in answer.stderr, "a bar on stderr"
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")


def test_one_set_as_a_table(simulate) -> None:
    answer = simulate("--policy", "in-force", "--trace", "trace.csv", "--most", "20", *ENGINE)
    assert answer.exit_code == 0, answer.output
    for word in ("tight", "pool:chat/0", "20 requests in", "Not played"):
        assert word in answer.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "either --trace FILE or --ledger last-7-days"),
        (("--trace", "trace.csv", "--ledger", "last-7-days"), "either --trace FILE or"),
        (("--trace", "none.csv"), "none.csv: No such file"),
        (("--trace", "trace.csv"), "use --engine chat=PROFILE"),
        (("--trace", "trace.csv", "--engine", "chat"), "write POOL=PROFILE"),
        (("--trace", "trace.csv", "--engine", "chat=fast"), "name a profile or a file"),
        (("--trace", "trace.csv", "--engine", "x=h100-llama-3.1-8b-fp8"), "no pool `x`"),
        (("--trace", "trace.csv", "--model", "x", *ENGINE), "there is no model `x`"),
        (("--trace", "trace.csv", "--model", "a", "--model", "b"), "without FROM= is enough"),
        (("--trace", "trace.csv", "--policy", "no.yaml", *ENGINE), "no.yaml: No such file"),
        (("--trace", "trace.csv", "--policy", "trace.csv", *ENGINE), "trace.csv cannot be used"),
        (
            ("--trace", "trace.csv", "--html", "no/where.html", *ENGINE),
            "the folder no does not exist",
        ),
        (("--ledger", "last-7-days"), "there is no ledger"),
    ],
)
def test_mistakes_are_one_line_that_names_the_remedy(simulate, words, said) -> None:
    first = () if "--policy" in words else ("--policy", "new.yaml")
    answer = simulate(*first, *words)
    assert answer.exit_code == 1
    assert said in answer.stderr.replace("\n", " ")
    assert answer.stdout == ""


PATH = "/v1/organization/policies/simulate"
LOOSE_SET = "policies: [{name: loose}]\n"
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
    monkeypatch.setattr("gateway.cli.simulate.LOOK_S", 0.0)
    monkeypatch.setenv(gateway_address.API_KEY, "gw_a_b")
    monkeypatch.setenv(gateway_address.GATEWAY, "https://there")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.yaml").write_text(LOOSE_SET)
    return asked, states


def state(name: str, **more) -> dict:
    now = {"doing": "plays new.yaml", "done": 5, "of": 9}
    return {"state": name, "progress": now, "result": None, "fault": None, **more}


def simulate_there(*words: str):
    return CliRunner().invoke(app, ["policy", "simulate", "--policy", "new.yaml", *words])


def test_it_is_waited_for_and_shown(there) -> None:
    asked, states = there
    states += [state("running"), state("running"), state("done", result=DOCUMENT)]
    words = ("--against", "in-force", "--ledger", "last-7-days", "--times", "2")
    answer = simulate_there(*words, "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout) == DOCUMENT
    sent = json.loads(asked[0].content)
    assert (asked[0].method, asked[0].url.path, len(asked)) == ("POST", PATH, 4)
    assert (sent["policies"], sent["name"]) == (LOOSE_SET, "new.yaml")
    assert (sent["against"], sent["against_name"]) == ("in-force", "in-force")
    assert (sent["ledger"], sent["times"], sent["model"]) == ("last-7-days", 2.0, [])
    assert asked[1].url.params["job"] == "j1"


def test_what_went_wrong_there_is_one_line(there) -> None:
    there[1].append(state("failed", fault="there is no model `x`"))
    answer = simulate_there("--ledger", "last-7-days")
    assert answer.exit_code == 1
    assert "there is no model `x`" in answer.stderr


@pytest.mark.parametrize("words", [("--trace", "trace.csv"), ()])
def test_a_file_of_traffic_stays_here(there, words) -> None:
    answer = simulate_there(*words)
    assert answer.exit_code == 1
    assert "with --gateway only its own recorded traffic can be simulated" in answer.stderr
    assert there[0] == []
