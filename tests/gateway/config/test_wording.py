"""One plain sentence per finding of the schema: the path of the file, never a class or a secret."""

import pytest
import yaml
from pydantic import ValidationError

from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.schema import PoolSection, Settings
from gateway.config.wording import fault_of, section_at, suggested_key

RULE = "policies: [{name: x, %s}]"
ENGINE = "pools: {a: {engine: {%s}, gpu: {type: CPU}}}"


def only_fault(text: str):
    document = yaml.safe_load(text)
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(document)
    (fault,) = [fault_of(finding, document) for finding in caught.value.errors()]
    return fault


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("modles: {}", "modles", "unknown key; did you mean `models`?"),
        ("models: {a: {wat: 1}}", "models.a.wat", "unknown key"),
        ("models: {a: {target: []}}", "models.a.target", "did you mean `targets`?"),
        ("pools: {a: {gpu: {type: CPU}, engine: {scrape_s: 1}}}", "pools.a.engine.scrape_s",
         "it belongs to `telemetry.scrape_s`"),
        (ENGINE % "ttft_ms: 1", "pools.a.engine.ttft_ms", "belongs to `policies[].slo.ttft_ms`"),
        (ENGINE % "residency: any", "pools.a.engine.residency",
         "is a key of `models.NAME` and `policies[]`"),
        ("providers: {a: {api_key: sk-1}}", "providers.a.api_key", "did you mean `api_key_env`"),
        ("pools: {a: {engine: {}}}", "pools.a.gpu", "is missing: a section with `type`"),
        ("budgets: [{scope: global}]", "budgets[0].usd", "is missing: limit of one period"),
        ("server:", "server", "is empty: give it a value or leave the key out"),
        ("models: {a: }", "models.a", "is empty"),
        ("models: [a]", "models", "must be `key: value` lines, not a list"),
        ("server: 8080", "server", "must be `key: value` lines, not `8080`"),
        ("models: {a: {targets: openai/x}}", "models.a.targets", "must be a list like [x, y]"),
        ("models: {a: passthru}", "models.a", "must be `passthrough`, not `passthru`"),
        ("models: {4: {}}", "models.4", "a name must be text: put `4` into quotes"),
        ("4: x", "4", "unknown key: is a comma or a quote misplaced?"),
        ("prices: [4]", "prices[0]", "must be text: put `4` into quotes"),
        ("prices: [{a: 1}]", "prices[0]", "must be text, not `key: value` lines"),
        ("server: {port: 99999}", "server.port", "`99999` must be at most 65535"),
        ("server: {workers: 0}", "server.workers", "`0` must be at least 1"),
        ("server: {workers: 1.5}", "server.workers", "`1.5` is not a whole number"),
        ("server: {workers: two}", "server.workers", "`two` is not a whole number"),
        ("server: {host: on}", "server.host", "put the word into quotes"),
        ("server: {timeouts: {idle_s: 0}}", "server.timeouts.idle_s", "`0` must be more than 0"),
        ("server: {timeouts: {idle_s: .inf}}", "server.timeouts.idle_s", "not a finite number"),
        ("dashboard: {enabled: perhaps}", "dashboard.enabled", "`perhaps` is not true or false"),
        (RULE % "kv_headroom_floor: off", "policies[0].kv_headroom_floor", "YAML reads a bare"),
        (RULE % "kv_headroom_floor: of", "policies[0].kv_headroom_floor", "must be `off`"),
        (RULE % "otherwise: que", "policies[0].otherwise",
         "`que` is not one of `queue`, `best_effort`, `reject`"),
        ("policies: [{name: ''}]", "policies[0].name", "must not be empty"),
        ("budgets: [{scope: global, usd: five}]", "budgets[0].usd", "`five` is not a number"),
        ("budgets: [{scope: global, usd: 1e-13}]", "budgets[0].usd", "the smallest unit is"),
        ("pools: {a: {engine: {}, gpu: {type: CPU, since: soon}}}", "pools.a.gpu.since",
         "`soon` is not a date like 2026-11-01"),
        ("pools: {a: {engine: {}, gpu: {type: CPU, since: 2026-11-01 12:30:00}}}",
         "pools.a.gpu.since", "without a time"),
        (f"prices: [{'9' * 100}]", "prices[0]", "..."),
    ],
)  # fmt: skip
def test_a_finding_is_a_plain_sentence(text, path, words):
    fault = only_fault(text)
    assert fault.path == path
    assert words in fault.message
    assert not any(word in fault.message for word in ("Input", "Model", "pydantic", "literal"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('policies: [{name: a, match: {times: [{starts: "9:00"}]}}]', "a time of the day, two"),
        ("peers: {listen: nowhere}", "a host with its port"),
        ('server: {cors_origins: ["x/y"]}', "where pages come from"),
        ("oidc: {issuer: here}", "an address: `https://"),
    ],
)
def test_a_form_is_shown_by_an_example(text, words):
    faults = draft_settings(read_document(text)).faults
    assert any(words in fault.message for fault in faults), faults


@pytest.mark.parametrize("field", ["api_key_env", "api_key"])
def test_a_secret_is_not_repeated(field):
    fault = only_fault(f"providers: {{a: {{{field}: sk-proj-secret}}}}")
    assert "secret" not in fault.message.replace("never the secret itself", "")


@pytest.mark.parametrize(
    ("place", "section"),
    [
        ((), Settings),
        (("pools", "engine"), PoolSection),  # a name that is also a key
        (("pools", "a", "engine", "port"), None),
        (("nothing",), None),
    ],
)
def test_the_section_at_a_place_is_found(place, section):
    assert section_at(place) is section


def test_a_slip_is_told_from_a_stranger():
    assert suggested_key(("pools", "a", "engine", "replica")) == (
        "pools",
        "a",
        "engine",
        "replicas",
    )
    assert suggested_key(("pools", "a", "engine", "zzz")) is None
