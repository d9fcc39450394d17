"""A set of policies under a configuration: does it fit, and what is then in force.

A set is the `policies` of a YAML file; whatever else the file holds is not looked at, so a whole
configuration file is a set, too. It is judged with all the rest of the configuration in force: a
policy for a model that is not there is a fault here as it is in the file.
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

LONGEST = 1_000_000  # characters; a thousand policies have half as many


class EffectivePolicies(NamedTuple):
    """`fault`: why the stored set is not the one in force."""

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
    """Every fault of the set by line; its `settings` are the given ones under the set.

    `known`: names of the ledger's keys by kind; policies that name others are warned of. `steps`:
    how long steps of pools take; policies that promise a token earlier are warned of.
    """
    if len(text) > LONGEST:
        large = f"has {len(text):,} characters, more than {LONGEST:,}: it is no set of policies"
        return ConfigReport(name, None, (ConfigFault((), large),))
    given = read_document(text)
    if given.value is None:
        return ConfigReport(name, None, given.faults)
    if "policies" not in given.value:
        missing = ConfigFault((), "there is no `policies` in it", line=1)
        return ConfigReport(name, None, (*given.faults, missing))
    # What nobody stated stays unstated: a default is judged otherwise than what a file says.
    rest = settings.model_dump(mode="json", exclude_unset=True)
    value = {**rest, "policies": given.value["policies"]}
    return judge_document(ConfigDocument(value, given.faults, given.root), name, known, steps)


def rules_of(settings: Settings, stored: PolicySet | None) -> EffectivePolicies:
    """The configuration file's policies, or the stored set; one that no longer fits is left out."""
    if stored is None or stored.document is None:
        return EffectivePolicies(settings, version(settings))
    found = examine_set(stored.document, settings, f"policy set {stored.number}")
    if found.settings is None:
        return EffectivePolicies(settings, version(settings), "; ".join(found.lines))
    return EffectivePolicies(found.settings, version(found.settings))


def written(settings: Settings) -> str:
    """The policies of a configuration as a set: what is not said is left to the defaults."""
    policies = [rule.model_dump(mode="json", exclude_defaults=True) for rule in settings.policies]
    return yaml.safe_dump({"policies": policies}, sort_keys=False, allow_unicode=True)
