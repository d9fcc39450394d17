"""The Kubernetes tutorial as typed: its Secrets, image, files and names are those of the chart."""

import re
import shlex
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.docsite.blocks import blocks, commands
from gateway.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = "tutorials/kubernetes.md"
TEXT = (ROOT / "docs" / PAGE).read_text("utf-8")
FOUND = list(blocks(PAGE, TEXT))
SHELL = [line for block in FOUND if block.language == "sh" for line in commands(block.text)]
SAVED = {name: block.text for block in FOUND if (name := block.value("save"))}
PLACES = {"statefulset": "StatefulSet", "svc": "Service"}


def words_of(*beginning: str) -> list[list[str]]:
    """Words of each command that begins so, `-n llm` left out."""
    found = []
    for line in SHELL:
        words = shlex.split(line.replace("<(", "'<(").replace("urandom)", "urandom)'"))
        if "-n" in words:
            place = words.index("-n")
            words = words[:place] + words[place + 2 :]
        if tuple(words[: len(beginning)]) == beginning:
            found.append(words[len(beginning) :])
    return found


def values_of(words: list[str]) -> dict[str, Any]:
    """The files behind `-f`, the later above the earlier, as Helm merges them."""
    merged: dict[str, Any] = {}
    for flag, name in pairwise(words):
        if flag == "-f":
            text = SAVED[name] if name in SAVED else (ROOT / name).read_text("utf-8")
            merged = _merged(merged, yaml.safe_load(text))
    return merged


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {name: (below.get(name), value) for name, value in above.items()}
    return below | {
        name: _merged(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
        for name, (old, new) in both.items()
    }


@pytest.fixture(scope="module")
def installed(render):
    (install,) = words_of("helm", "install")
    return render(yaml.safe_dump(values_of(install)))


def made_secrets() -> dict[str, set[str]]:
    made = defaultdict(set)
    for name, *options in words_of("kubectl", "create", "secret", "generic"):
        for option in options:
            made[name].add(option.partition("=")[2].partition("=")[0])
    return made


def asked_secrets(chart) -> dict[str, set[str]]:
    """Keys of Secrets that pods mount or read; of one that is mounted whole none is known."""
    asked = defaultdict(set)
    for _, template in chart.pods:
        spec = template["spec"]
        for volume in spec.get("volumes", ()):
            if secret := volume.get("secret"):
                asked[secret["secretName"]] |= {item["key"] for item in secret.get("items", ())}
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for variable in container.get("env", ()):
                if found := variable.get("valueFrom", {}).get("secretKeyRef"):
                    asked[found["name"]].add(found["key"])
    return asked


def test_it_makes_every_secret_that_the_pods_ask_for(installed) -> None:
    made, asked = made_secrets(), asked_secrets(installed)
    assert set(asked) == set(made) == {"breakeven", "breakeven-access", "providers"}
    assert {name: keys - made[name] for name, keys in asked.items() if keys - made[name]} == {}


def test_pods_run_the_image_that_it_pushes(installed) -> None:
    """With the chart's own `breakeven:0.1.0` no node finds an image."""
    ((pushed,),) = words_of("docker", "push")
    images = {
        container["image"] for _, template in installed.pods
        for container in template["spec"]["containers"]
    }  # fmt: skip
    assert images == {pushed}
    (built,) = words_of("docker", "build")
    assert built[built.index("-t") + 1] == pushed
    assert (ROOT / built[built.index("-f") + 1]).is_file()


def test_the_network_lets_hosts_reach_a_database_outside_the_cluster(installed) -> None:
    (url,) = re.findall(r"postgresql\+psycopg://\S+@([\w.]+):(\d+)/", TEXT)
    assert not url[0].endswith(".svc"), "it is the house's"
    egress = [
        rule for policy in installed.of("NetworkPolicy")
        for rule in policy["spec"].get("egress", ())
        if int(url[1]) in [port.get("port") for port in rule.get("ports", ())]
    ]  # fmt: skip
    assert egress
    assert all(any("ipBlock" in peer for peer in rule["to"]) for rule in egress)


def test_upgrades_keep_the_values_of_the_installation() -> None:
    (install,), (upgrade,) = words_of("helm", "install"), words_of("helm", "upgrade")
    assert values_of(upgrade) == values_of(install)
    assert install[:2] == upgrade[:2]


def test_what_it_names_in_the_cluster_is_there(installed) -> None:
    rollouts = [words[0] for words in words_of("kubectl", "rollout", "status")]
    forwards = [words[0] for words in words_of("kubectl", "port-forward")]
    assert rollouts
    assert forwards
    for kind, name in (named.split("/") for named in rollouts + forwards):
        installed.one(PLACES[kind], name)
    pods = {words[0] for words in words_of("kubectl", "exec")}
    pods |= set(re.findall(r"breakeven-gateway-\d+", TEXT))
    replicas = installed.one("StatefulSet", "breakeven-gateway")["spec"]["replicas"]
    assert pods == {f"breakeven-gateway-{place}" for place in range(replicas)}
    calls = [line.partition(" -- breakeven ")[2].split()[0] for line in SHELL if " -- " in line]
    assert calls
    assert set(calls) <= set(COMMANDS)
