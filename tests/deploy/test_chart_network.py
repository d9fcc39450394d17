"""Who reaches whom by the chart's NetworkPolicies, worked out as a cluster does."""

import copy
from typing import Any

import pytest

GATEWAY, DASHBOARD = "breakeven-gateway", "breakeven-dashboard"
MIGRATIONS, ENGINE = "breakeven-migrations", "breakeven-engine-llama-70b"
PORTS = {GATEWAY: 8080, DASHBOARD: 8501, ENGINE: 8000}
PEERS = 9444


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items()


def allows(
    policies: list[dict[str, Any]], way: str, pod: dict[str, str], peer: dict[str, str], port: int
) -> bool:
    """Whether a pod of this release may speak with another one: both in the release's namespace.

    As the API has it: a pod that no policy selects for this way is open; else one rule of one of
    them has to allow it; a rule without peers allows everybody, one without ports every port.
    """
    own = [
        policy["spec"]
        for policy in policies
        if way.title() in policy["spec"]["policyTypes"]
        and selects(policy["spec"]["podSelector"], pod)
    ]
    if not own:
        return True
    for spec in own:
        for rule in spec.get(way, []):
            peers = rule.get("from" if way == "ingress" else "to", [])
            ports = [each_port["port"] for each_port in rule.get("ports", [])]
            named = not peers or any(
                selects(each_peer["podSelector"], peer)
                for each_peer in peers
                if "podSelector" in each_peer and "namespaceSelector" not in each_peer
            )
            if named and (not ports or port in ports):
                return True
    return False


def reached(chart: Any, policies: list[dict[str, Any]] | None = None) -> set[tuple[str, str]]:
    """Pairs (from, to) by the pods' own labels, at the port on which `to` listens."""
    policies = chart.of("NetworkPolicy") if policies is None else policies
    pods = {name: pod["metadata"]["labels"] for name, pod in chart.pods}
    return {
        (each_pod, other)
        for each_pod in pods
        for other, port in PORTS.items()
        if each_pod != other
        and allows(policies, "egress", pods[each_pod], pods[other], port)
        and allows(policies, "ingress", pods[other], pods[each_pod], port)
    }


def test_engines_are_reached_from_the_gateway_alone(several) -> None:
    assert reached(several) == {(GATEWAY, ENGINE), (DASHBOARD, GATEWAY)}


def peers_reached(chart: Any, policies: list[dict[str, Any]] | None = None) -> set[str]:
    """Who may reach the port at which hosts tell each other, a gateway's other pods included."""
    policies = chart.of("NetworkPolicy") if policies is None else policies
    pods = {name: pod["metadata"]["labels"] for name, pod in chart.pods}
    return {
        key
        for key, labels in pods.items()
        if allows(policies, "egress", labels, pods[GATEWAY], PEERS)
        and allows(policies, "ingress", pods[GATEWAY], labels, PEERS)
    }


def test_hosts_reach_their_peers_and_nobody_else_does(several, everything) -> None:
    assert peers_reached(several) == {GATEWAY}
    assert peers_reached(everything) == set()  # they tell nobody


def test_control_a_policy_that_lets_the_dashboard_to_the_peers_is_noticed(several) -> None:
    policies = copy.deepcopy(several.of("NetworkPolicy"))
    for policy in policies:
        for way in ("ingress", "egress"):
            for rule in policy["spec"].get(way, []):
                rule.pop("ports", None)
    assert peers_reached(several, policies) == {GATEWAY, DASHBOARD}
    assert peers_reached(several, []) == {GATEWAY, DASHBOARD, MIGRATIONS, ENGINE}


def test_control_without_policies_everybody_reaches_everybody(several) -> None:
    assert len(reached(several, [])) == 4 * 3 - 3


def test_control_an_engine_that_admits_all_is_noticed(several) -> None:
    policies = copy.deepcopy(several.of("NetworkPolicy"))
    for policy in policies:
        if policy["metadata"]["name"] == ENGINE:
            policy["spec"]["ingress"][0]["from"] = []
        if policy["metadata"]["name"] in (DASHBOARD, "breakeven-nothing-else"):
            policy["spec"]["policyTypes"] = ["Ingress"]
    assert (DASHBOARD, ENGINE) in reached(several, policies)


def test_a_policy_selects_every_pod_both_ways(example) -> None:
    everything = example.one("NetworkPolicy", "breakeven-nothing-else")["spec"]
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    assert "egress" not in everything
    for _, pod in example.pods:
        assert selects(everything["podSelector"], pod["metadata"]["labels"])


def test_each_policy_is_about_one_kind_of_pod_that_is_there(example) -> None:
    for policy in example.of("NetworkPolicy"):
        if policy["metadata"]["name"] != "breakeven-nothing-else":
            chosen = [
                name for name, pod in example.pods
                if selects(policy["spec"]["podSelector"], pod["metadata"]["labels"])
            ]  # fmt: skip
            assert chosen == [policy["metadata"]["name"]]


def test_an_engine_goes_nowhere(several) -> None:
    spec = several.one("NetworkPolicy", ENGINE)["spec"]
    assert "Egress" in spec["policyTypes"]
    assert "egress" not in spec


def egress_ports(chart: Any, name: str) -> set[int]:
    spec = chart.one("NetworkPolicy", name)["spec"]
    return {port["port"] for rule in spec["egress"] for port in rule["ports"]}


def test_the_dashboard_asks_gateway_database_and_names_alone(several, everything) -> None:
    assert egress_ports(several, DASHBOARD) == {53, 5432, 8080}
    assert egress_ports(several, MIGRATIONS) == {53, 5432}
    assert egress_ports(everything, DASHBOARD) == {53, 5432, 8080, 443}  # signed in elsewhere


def test_the_database_is_where_the_values_say(several) -> None:
    for name in (GATEWAY, DASHBOARD, MIGRATIONS):
        rules = several.one("NetworkPolicy", name)["spec"]["egress"]
        (database,) = [rule for rule in rules if rule["ports"][0]["port"] == 5432]
        assert database["to"] == [{"ipBlock": {"cidr": "10.20.0.0/24"}}]


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [("http://collector.watch:4318", 4318), ("https://otel.example.com/tenant", 443),
     ("http://collector", 80), ("http://[fd00::1]:4318/x", 4318)],
)  # fmt: skip
def test_hosts_reach_the_collector_that_they_are_told_of(render, endpoint: str, port: int) -> None:
    """And nobody else does: without the rule nothing of it would arrive."""
    chart = render(f"config: {{opentelemetry: {{endpoint: '{endpoint}'}}}}")
    rules = chart.one("NetworkPolicy", GATEWAY)["spec"]["egress"]
    inside = [rule for rule in rules if rule["to"] == [{"namespaceSelector": {}}]]
    assert port in {each_port["port"] for rule in inside for each_port in rule["ports"]}
    assert egress_ports(chart, DASHBOARD) == {53, 5432, 8080}


def test_without_a_collector_there_is_no_way_to_one(several) -> None:
    assert egress_ports(several, GATEWAY) == {53, 5432, 9444, 8000, 443}


def test_outside_means_no_address_of_the_house(several) -> None:
    rules = several.one("NetworkPolicy", GATEWAY)["spec"]["egress"]
    (outside,) = [rule for rule in rules if rule["ports"][0]["port"] == 443]
    (block,) = outside["to"]
    for private in ("10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"):
        assert private in block["ipBlock"]["except"]


@pytest.mark.parametrize("peers", ["clients", "viewers"])
def test_nobody_named_is_refused_for_it_would_be_everybody(render, refused, peers: str) -> None:
    with pytest.raises(refused, match=f"/networkPolicy/{peers}"):
        render(f"networkPolicy: {{{peers}: []}}")
