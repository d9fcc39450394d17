"""The chart's values: wrong ones are refused by Helm with the field's name."""

import pytest

from deploy import valuesschema

POOL = "config: {pools: {own: {gpu: {type: H200}}}}\n"
ENGINE = "engines: {own: {model: {claim: models, path: own}"


def test_the_written_schema_is_what_its_parts_say() -> None:
    """`make settings` writes it anew."""
    assert valuesschema.WRITTEN.read_text(encoding="utf-8") == valuesschema.text()


def test_what_only_the_chart_can_know_is_left_out() -> None:
    schema = valuesschema.joined()
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
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_its_name(render, refused, values: str, named: str) -> None:
    with pytest.raises(refused) as told:
        render(values)
    assert named in str(told.value)
    assert "sk-1" not in str(told.value)


def test_control_what_is_right_is_taken(render) -> None:
    assert render(POOL + ENGINE + "}}").one("StatefulSet", "breakeven-engine-own")
