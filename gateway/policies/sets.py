"""Policy set under a configuration: whether it fits, and what is then active.

A set is the `policies` of a YAML file. Other keys are ignored, so a whole configuration file is a
set, too. It is checked with the rest of the active configuration: a policy for an unknown model is
a fault, as in the file.
"""

from collections.abc import Mapping
from typing import NamedTuple

import yaml

from gateway.config.checks.known_names import Known
from gateway.config.document import ConfigDocument, read_document
from gateway.config.faults import ConfigFault
from gateway.config.settings import (
    ConfigReport,
    Settings,
    judge_document,
    version,
)
from gateway.config.step_promises import PoolSteps
from ledger.policies import PolicySet

LONGEST = 1_000_000  # characters; 1,000 policies have about half


class EffectivePolicies(NamedTuple):
    """Active policies; `fault` is why the stored set is not used."""

    settings: Settings
    version: str
    fault: str | None = None


def examine_set(
    text: str,
    settings: Settings,
    name: str,
    known: Known | None = None,
    steps: Mapping[str, PoolSteps] | None = None,
) -> ConfigReport:
    """Return all faults of the set by line; `settings` of the report include the set.

    `known`: names of the ledger's keys by kind, to warn of policies for unknown names. `steps`:
    step times of pools, to warn of policies whose TPOT is too short for them.
    """
    if len(text) > LONGEST:
        large = f"has {len(text):,} characters, more than {LONGEST:,}: it is not a set of policies"
        return ConfigReport(name, None, (ConfigFault((), large),))
    given = read_document(text)
    if given.value is None:
        return ConfigReport(name, None, given.faults)
    if "policies" not in given.value:
        missing = ConfigFault((), "there is no `policies` in it", line=1)
        return ConfigReport(name, None, (*given.faults, missing))
    # Keep unset values unset: checks treat defaults differently.
    rest = settings.model_dump(mode="json", exclude_unset=True)
    value = {**rest, "policies": given.value["policies"]}
    return judge_document(ConfigDocument(value, given.faults, given.root), name, known, steps)


def rules_of(settings: Settings, stored: PolicySet | None) -> EffectivePolicies:
    """Return the active policies: the stored set, or the file's if that is missing or invalid."""
    if stored is None or stored.document is None:
        return EffectivePolicies(settings, version(settings))
    found = examine_set(stored.document, settings, f"policy set {stored.number}")
    if found.settings is None:
        return EffectivePolicies(settings, version(settings), "; ".join(found.lines))
    return EffectivePolicies(found.settings, version(found.settings))


def written(settings: Settings) -> str:
    """Return the policies of a configuration as a set, without defaults."""
    policies = [rule.model_dump(mode="json", exclude_defaults=True) for rule in settings.policies]
    return yaml.safe_dump({"policies": policies}, sort_keys=False, allow_unicode=True)
