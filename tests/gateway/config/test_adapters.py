"""Adapters become models by themselves, and what the file says of one itself stands."""

from functools import partial

import httpx
import pytest

from gateway.config.adapters import with_adapters
from gateway.config.settings import Settings


def document(**models: object) -> dict[str, object]:
    return {
        "models": {"tiny": {"targets": ["pool:tiny"], "compare_with": ["openai/x"]}, **models},
        "pools": {
            "tiny": {"engine": {"adapters": {"sql": "/a"}}, "gpu": {"type": "CPU"}},
            "more": {"engine": {"adapters": {"sql": "/a"}}, "gpu": {"type": "CPU"}},
        },
    }


def test_an_adapter_is_a_model_of_every_pool_that_has_it():
    given = document()
    settings = Settings.model_validate(given)
    made = settings.models["sql"]
    assert made.targets == ("pool:tiny", "pool:more")
    assert made.adapter == "sql"
    assert made.compare_with == ("openai/x",)  # of the first model of that pool
    assert "sql" not in given["models"]
    assert Settings.model_validate(settings.model_dump()) == settings


def test_a_model_of_its_name_stands_as_it_is_written():
    own = {"targets": ["pool:tiny", "openai/y"], "adapter": "sql", "compare_with": ["openai/y"]}
    assert Settings.model_validate(document(sql=own)).models["sql"].targets == tuple(own["targets"])


@pytest.mark.parametrize(
    "broken",
    [
        None, [], {"pools": []}, {"pools": {"a": None}}, {"pools": {"a": {"engine": 3}}},
        {"pools": {"a": {"engine": {"adapters": ["x"]}}}}, {"pools": {}, "models": []},
        {"pools": {1: {"engine": {"adapters": {"x": "y"}}}}},
    ],
)  # fmt: skip
def test_of_what_has_the_wrong_shape_nothing_is_made(broken: object):
    assert with_adapters(broken) == broken


@pytest.fixture(scope="module")
def gateway(serve, tmp_path_factory):
    """A simulated engine that knows two names."""
    return serve(
        {
            "models": {"tiny": {"targets": ["pool:tiny"], "compare_with": ["openai/gpt-4o-mini"]}},
            "pools": {
                "tiny": {
                    "engine": {"kind": "simulated", "model": "h200-llama-3.1-8b-fp8",
                               "replicas": 1, "port": 0, "adapters": {"sql": "/nowhere"}},
                    "gpu": {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1},
                }
            },
        }
    )  # fmt: skip


def test_the_engine_is_asked_for_it_and_the_books_name_it(gateway):
    headers = {"authorization": f"Bearer {gateway.key()}"}
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}

    def ask(model: str) -> httpx.Response:
        url = gateway.base_url + "/chat/completions"
        return httpx.post(url, json={"model": model, **body}, headers=headers, trust_env=False)

    def answered(model: str) -> httpx.Response | None:
        answer = ask(model)
        return answer if answer.is_success else None  # the engine may not have been looked at yet

    answers = {name: gateway.until(partial(answered, name), 60) for name in ("sql", "tiny")}
    for model, answer in answers.items():
        assert answer.headers["x-breakeven-backend"] == "pool:tiny/0"
        row = gateway.until(
            lambda answer=answer: gateway.rows(
                "select * from attempts where request_id = :id",
                id=answer.headers["x-request-id"],
            ),
            30,
        )[0]
        assert row["model"] == model
        assert row["target"] == "pool:tiny/0"
    unknown = ask("sqk")
    assert unknown.status_code == 404
    assert "The model `sqk` does not exist" in unknown.json()["error"]["message"]
    listed = httpx.get(gateway.base_url + "/models", headers=headers, trust_env=False).json()
    assert {"tiny", "sql"} <= {entry["id"] for entry in listed["data"]}
    counted = httpx.get(gateway.root + "/metrics", trust_env=False).text
    assert 'model="sql"' in counted
