"""The chart's values: wrong ones are refused by Helm with the field's name."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import pytest
import yaml

from deploy import valuesschema

POOL = "config: {pools: {own: {gpu: {type: H200}}}}\n"
ENGINE = "engines: {own: {model: {claim: models, path: own}"


def test_the_written_schema_is_what_its_parts_say() -> None:
    """`make settings` writes it anew."""
    assert valuesschema.WRITTEN.read_text(encoding="utf-8") == valuesschema.text()


def test_what_only_the_chart_can_know_is_left_out() -> None:
    schema = valuesschema.join_schemas()
    config = schema["properties"]["config"]["properties"]
    assert "server" in config
    assert {"state_dir", "dashboard", "peers"} & set(config) == set()
    for name, keys in valuesschema.OURS.items():
        if name != "Settings":
            assert set(keys) & set(schema["$defs"][name]["properties"]) == set()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("gatewy: {}", "gatewy"),
        ("gateway: {replica: 2}", "replica"),
        ("gateway: {peers: {enabled: maybe}}", "/gateway/peers/enabled"),
        ("gateway: {peers: {hosts: []}}", "hosts"),
        ("config: {peers: {listen: '0.0.0.0:9'}}", "peers"),
        ("gateway: {replicas: 0}", "/gateway/replicas"),
        ("gateway: {replicas: two}", "/gateway/replicas"),
        ("gateway: {variables: {OPENAI_API_KEY: sk-1}}", "OPENAI_API_KEY"),
        ("gateway: {secretEnv: {A_KEY: {value: sk-1}}}", "/gateway/secretEnv/A_KEY"),
        ("gateway: {secretEnv: {A_KEY: sk-1}}", "/gateway/secretEnv/A_KEY"),
        ("gateway: {state: {accessMode: ReadWriteMany}}", "/gateway/state/accessMode"),
        ("gateway: {state: {size: twenty}}", "/gateway/state/size"),
        ("image: {digest: latest}", "/image/digest"),
        ("secrets: {keys: {pepper: ''}}", "/secrets/keys/pepper"),
        ("dashboard: {access: {secret: A B}}", "/dashboard/access/secret"),
        ("config: {wokers: 2}", "wokers"),
        ("config: {server: {wokers: 2}}", "wokers"),
        ("config: {server: {port: 9000}}", "port"),
        ("config: {ledger: {url: 'postgresql://u:p@h/d'}}", "url"),
        ("config: {state_dir: /tmp}", "state_dir"),
        ("config: {policies: [{name: a, otherwise: maybe}]}", "/config/policies/0/otherwise"),
        ("config: {budgets: [{scope: global}]}", "usd"),
        (POOL + "engines: {own: {}}", "model"),
        (POOL + ENGINE + ", gpus: 0}}", "/engines/own/gpus"),
        (POOL + ENGINE + ", args: [trust-remote-code]}}", "/engines/own/args/0"),
        (POOL + ENGINE.replace("own:", "Own_1:", 1) + "}}", "Own_1"),
        (ENGINE + "}}", "config.pools.own is missing"),
        (POOL, "config.pools.own: engine is missing, and so is engines.own"),
        ("autoscaling: {gateway: {through: magic}}", "/autoscaling/gateway/through"),
        ("httpRoute: {enabled: true}", "/httpRoute/"),
        ("ingress: {enabled: true}", "/ingress/host"),
        ("networkPolicy: {database: {port: 0}}", "/networkPolicy/database/port"),
        ("networkPolicy: {outside: {ports: []}}", "/networkPolicy/outside/ports"),
        ("gateway: {resources: {limits: {memory: -1}}}", "/gateway/resources/limits/memory"),
        ("gateway: {resources: {limits: {memory: four}}}", "/gateway/resources/limits/memory"),
        ("image: {repository: 'a b'}", "/image/repository"),
        ("image: {tag: 'a b'}", "/image/tag"),
        ("ingress: {dashboardHost: 'a b'}", "/ingress/dashboardHost"),
        ("ingress: {tlsSecret: A_B}", "/ingress/tlsSecret"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_its_name(render, refused, values: str, named: str) -> None:
    with pytest.raises(refused) as told:
        render(values)
    assert named in str(told.value)
    assert "sk-1" not in str(told.value)


def defaults(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every name that `values.yaml` gives a value, but in what belongs to somebody else."""
    for name, item in value.items():
        yield (*at, name)
        if isinstance(item, dict) and name not in OTHERS:
            yield from defaults(item, (*at, name))


OTHERS = {"config", "image", "engineImage", "resources", "labels"}
VALUES = yaml.safe_load((valuesschema.HELM / "breakeven/values.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "place", ["networkPolicy.clients", "networkPolicy.enabled", "networkPolicy.outside.to",
              "secrets.keys", "gateway.state"],
)  # fmt: skip
def test_a_value_that_is_taken_away_is_refused(render, refused, place: str) -> None:
    """A key whose lines are all comments is null, which takes the default away: Helm would
    render a rule without its peers, and to Kubernetes that is everybody."""
    *above, last = place.split(".")
    values: Any = {last: None}
    for name in reversed(above):
        values = {name: values}
    with pytest.raises(refused, match=f"missing property '{last}'"):
        render(yaml.safe_dump(values))


def test_every_default_is_asked_for() -> None:
    schema = valuesschema.join_schemas()
    asked = {
        (*at, name)
        for at in [(), *defaults(VALUES)]
        for name in reduce(lambda part, word: part.get("properties", {}).get(word, {}), at, schema)
        .get("required", [])
    }  # fmt: skip
    assert set(defaults(VALUES)) <= asked | {
        at for at in defaults(VALUES) if at[-2:-1] == ("access",)
    }


def test_control_what_is_right_is_taken(render) -> None:
    assert render(POOL + ENGINE + "}}").one("StatefulSet", "breakeven-engine-own")
