"""Operations on policy sets, for the command line and the admin API.

Everything here may block: the caller is a command, or a thread.
"""

import difflib
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Engine

from gateway.config.rule_fields import describe_rule
from gateway.config.settings import ConfigReport, Settings, version
from gateway.control.override_changes import OverrideAuthor
from gateway.policies.sets import EffectivePolicies, examine_set, rules_of, written
from ledger.policies import (
    PoliciesMovedError,
    PolicySet,
    policies_in_force,
    policy_set,
    policy_sets,
    store_policies,
)

FILE = "the configuration file"


class PolicyChangeError(Exception):
    """A policy change that cannot be made; its text says why."""


class PolicyConflict(PolicyChangeError):
    """Another set came first."""


class PolicySetChange(NamedTuple):
    """A set to be put in force; `document` None: those of the configuration file."""

    new: Settings
    document: str | None


def policies_document(
    engine: Engine, settings: Settings
) -> tuple[dict[str, Any], PolicySet | None, EffectivePolicies]:
    """The policies in force with since when and by whom."""
    stored = policies_in_force(engine)
    rules = rules_of(settings, stored)
    document = {
        **line_of(stored, settings),
        "version": rules.version,
        "policies": written(rules.settings),
    }
    return document, stored, rules


def check_document(examined: ConfigReport) -> dict[str, Any]:
    """Every fault of a set, and in words what each of its policies says."""
    found = examined.settings
    return {
        "valid": found is not None,
        "faults": [fault.document() for fault in examined.faults],
        "policies": [] if found is None else [describe_rule(rule) for rule in found.policies],
        "version": None if found is None else version(found),
    }


def diff_lines(engine: Engine, settings: Settings, new: Settings) -> list[str]:
    """Against what is in force, line by line.

    A stored set that does not fit would come back with the model that it misses: that it goes is a
    change, too.
    """
    stored = policies_in_force(engine)
    rules = rules_of(settings, stored)
    old, later = written(rules.settings).splitlines(), written(new).splitlines()
    lines = list(difflib.unified_diff(old, later, "in force", "new", lineterm=""))
    if stored is not None and rules.fault is not None:
        lines.insert(0, f"-set {stored.number}, which does not fit and is not used")
    return lines


def activate_policies(
    engine: Engine, change: PolicySetChange, author: OverrideAuthor, *, follows: int | None = None
) -> int:
    """The number of the new set. Raises `PolicyConflict` when another one came first.

    `follows`: the set that its author has seen in force.
    """
    stored = policies_in_force(engine)
    number = 0 if stored is None else stored.number
    if follows is not None and follows != number:
        raise PolicyConflict(f"set {number} is in force, not {follows}: look again")
    entry = PolicySet(number + 1, change.document, author.at_us, author.by, author.note)
    try:
        store_policies(engine, entry)
    except PoliciesMovedError:
        words = "somebody else put a set in force meanwhile: look again"
        raise PolicyConflict(words) from None
    return number + 1


def newest_number(engine: Engine) -> int:
    stored = policies_in_force(engine)
    return 0 if stored is None else stored.number


def previous_policies(
    engine: Engine, settings: Settings, number: int | None, *, to_file: bool
) -> PolicySetChange:
    """Return the set to go back to: without a number the one before; 0 is `to_file`."""
    if to_file and number:
        raise PolicyChangeError(f"either set {number}, or those of {FILE}: name one")
    stored = None if to_file or number == 0 else _earlier(engine, number)
    if stored is None or stored.document is None:
        return PolicySetChange(settings, None)
    rules = rules_of(settings, stored)
    if rules.fault is not None:
        raise PolicyChangeError(f"set {stored.number} no longer fits: {rules.fault}")
    return PolicySetChange(rules.settings, stored.document)


def policy_history(engine: Engine, settings: Settings, most: int) -> list[dict[str, Any]]:
    """The newest first."""
    return [line_of(policy_set_, settings) for policy_set_ in policy_sets(engine, most)]


def line_of(stored: PolicySet | None, settings: Settings) -> dict[str, Any]:
    if stored is None:
        return {"set": 0, "since": None, "by": FILE, "note": None, "version": version(settings)}
    rules = rules_of(settings, stored)
    return {
        "set": stored.number,
        "since": recorded_text(stored),
        "by": stored.actor,
        "note": stored.note,
        "version": None if rules.fault else rules.version,
    }


def recorded_text(stored: PolicySet) -> str:
    return datetime.fromtimestamp(stored.recorded_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def parse_change(text: str, settings: Settings, name: str) -> PolicySetChange:
    """Raises `PolicyChangeError` with every fault."""
    found = examine_set(text, settings, name)
    if found.settings is None:
        raise PolicyChangeError(f"the set cannot be used: {found.count}\n" + "\n".join(found.lines))
    return PolicySetChange(found.settings, written(found.settings))


def _earlier(engine: Engine, number: int | None) -> PolicySet | None:
    """None: what the configuration file says, from before the first set."""
    if number is not None:
        found = policy_set(engine, number)
        if found is None:
            raise PolicyChangeError(f"there is no set {number}: the history lists them")
        return found
    sets = policy_sets(engine, 2)
    if not sets:
        raise PolicyChangeError(f"nothing to take back: only {FILE} ever said")
    return sets[1] if len(sets) > 1 else None
