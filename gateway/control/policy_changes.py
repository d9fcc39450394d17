"""Operations on policy sets, for the command line and the admin API.

All functions may block: the caller is a command or a thread.
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
    """A policy change that cannot be made; the text says why."""


class PolicyConflict(PolicyChangeError):
    """Another policy set was activated first."""


class PolicySetChange(NamedTuple):
    """A policy set to activate; `document` is `None` for that of the configuration file."""

    new: Settings
    document: str | None


def policies_document(
    engine: Engine, settings: Settings
) -> tuple[dict[str, Any], PolicySet | None, EffectivePolicies]:
    """Return the active policies, with their time and author."""
    stored = policies_in_force(engine)
    rules = rules_of(settings, stored)
    document = {
        **line_of(stored, settings),
        "version": rules.version,
        "policies": written(rules.settings),
    }
    return document, stored, rules


def check_document(examined: ConfigReport) -> dict[str, Any]:
    """Return every fault of a policy set, and a description of each of its policies."""
    found = examined.settings
    return {
        "valid": found is not None,
        "faults": [fault.document() for fault in examined.faults],
        "policies": [] if found is None else [describe_rule(rule) for rule in found.policies],
        "version": None if found is None else version(found),
    }


def diff_lines(engine: Engine, settings: Settings, new: Settings) -> list[str]:
    """Return the difference from the active policies, line by line.

    A stored set that is invalid would become active with the model that it lacks, so replacing it
    is shown as a change.
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
    """Store and activate a policy set and return its number.

    `follows` is the set that the author saw as active. Raises `PolicyConflict` if another one came
    first.
    """
    stored = policies_in_force(engine)
    number = 0 if stored is None else stored.number
    if follows is not None and follows != number:
        raise PolicyConflict(
            f"policy set {number} is in force, but this change was made from set "
            f"{follows}: read the policies again, then repeat the change"
        )
    entry = PolicySet(number + 1, change.document, author.at_us, author.by, author.note)
    try:
        store_policies(engine, entry)
    except PoliciesMovedError:
        words = (
            "another policy set was put in force in the meantime: read the policies "
            "again, then repeat the change"
        )
        raise PolicyConflict(words) from None
    return number + 1


def newest_number(engine: Engine) -> int:
    stored = policies_in_force(engine)
    return 0 if stored is None else stored.number


def previous_policies(
    engine: Engine, settings: Settings, number: int | None, *, to_file: bool
) -> PolicySetChange:
    """Return the set to roll back to: by default the one before; 0 means `to_file`."""
    if to_file and number:
        raise PolicyChangeError(
            f"name either policy set {number} or `--to-file` ({FILE}), not both"
        )
    stored = None if to_file or number == 0 else _earlier(engine, number)
    if stored is None or stored.document is None:
        return PolicySetChange(settings, None)
    rules = rules_of(settings, stored)
    if rules.fault is not None:
        raise PolicyChangeError(
            f"policy set {stored.number} no longer fits the configuration: {rules.fault}"
        )
    return PolicySetChange(rules.settings, stored.document)


def policy_history(engine: Engine, settings: Settings, most: int) -> list[dict[str, Any]]:
    """Return the policy sets, newest first."""
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
    """Parse a policy set. Raises `PolicyChangeError` with every fault."""
    found = examine_set(text, settings, name)
    if found.settings is None:
        raise PolicyChangeError(
            f"the policy set is invalid: {found.count}\n" + "\n".join(found.lines)
        )
    return PolicySetChange(found.settings, written(found.settings))


def _earlier(engine: Engine, number: int | None) -> PolicySet | None:
    """Return an earlier set; `None` for the configuration file, before the first set."""
    if number is not None:
        found = policy_set(engine, number)
        if found is None:
            raise PolicyChangeError(
                f"there is no policy set {number}; `breakeven policy history` lists all"
            )
        return found
    sets = policy_sets(engine, 2)
    if not sets:
        raise PolicyChangeError(
            f"there is no earlier policy set: no set was ever applied over {FILE}"
        )
    return sets[1] if len(sets) > 1 else None
