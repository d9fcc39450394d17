"""Reader of the configuration file: one YAML document, checked in full before a start.

`load` rejects what no process could work with; `gateway.config.examination` checks the
surroundings. All faults are reported at once. This module imports no databases or clients, for
commands that need neither.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from gateway.config.aliases import resolve_model
from gateway.config.checks.known_names import Known, check_unknown_names
from gateway.config.crosschecks import CHECKS
from gateway.config.document import ConfigDocument, read_document
from gateway.config.draft import SettingsDraft, draft_settings
from gateway.config.faults import ConfigFault, count_of, independent_faults
from gateway.config.schema import (
    EngineSection,
    ModelSection,
    PolicyRuleSection,
    PoolSection,
    ProviderSection,
    Settings,
)
from gateway.config.schema_limits import BudgetSection
from gateway.config.schema_server import ServerSection, TimeoutsSection
from gateway.config.step_promises import PoolSteps, promise_faults
from gateway.errors import ConfigError

__all__ = [
    "BudgetSection",
    "ConfigError",
    "ConfigReport",
    "EngineSection",
    "ModelSection",
    "PolicyRuleSection",
    "PoolSection",
    "ProviderSection",
    "ServerSection",
    "Settings",
    "TimeoutsSection",
    "judge_document",
    "load",
    "parse",
    "resolve_model",
    "version",
]

NO_FILE = (
    "name your file with --config, or copy breakeven.example.yaml; `breakeven up` needs no file"
)


@dataclass(frozen=True, slots=True)
class ConfigReport:
    """Faults of a file by line; `settings` is set only if there is no error.

    `notes` say what could not be checked; they are not faults.
    """

    name: str
    settings: Settings | None
    faults: tuple[ConfigFault, ...]
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[ConfigFault, ...]:
        return tuple(fault for fault in self.faults if fault.severity == "error")

    @property
    def lines(self) -> list[str]:
        return [fault.text(self.name) for fault in self.faults]

    @property
    def count(self) -> str:
        """Return the counts as text: `2 errors, 1 warning`."""
        return count_of([fault.severity for fault in self.faults])


def load(path: Path) -> Settings:
    """Read and check the file. Raises `ConfigError` with all faults."""
    return _settings_of(judge_document(read_file(path), str(path)))


def parse(text: str, *, name: str) -> Settings:
    return _settings_of(judge_document(read_document(text), name))


def version(settings: Settings) -> str:
    """Return a short hash of the content: the policy version of attempts."""
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:12]


def read_file(path: Path) -> ConfigDocument:
    """Return the file's document; an unreadable file gives a document with a fault."""
    try:
        return read_document(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        return ConfigDocument(None, (ConfigFault((), f"{error.strerror}: {NO_FILE}"),))
    except OSError as error:
        return ConfigDocument(None, (ConfigFault((), error.strerror or "cannot be read"),))
    except UnicodeDecodeError:
        return ConfigDocument(None, (ConfigFault((), "not UTF-8 text"),))


def judge_document(
    document: ConfigDocument,
    name: str,
    known: Known | None = None,
    steps: Mapping[str, PoolSteps] | None = None,
) -> ConfigReport:
    """Return a document's settings and faults, without its surroundings.

    `known`: names of the ledger's keys by kind, to warn of policies for unknown names. `steps`:
    step times of pools, to warn of policies whose TPOT is too short for them.
    """
    draft = draft_settings(document)
    found = find_contradictions(draft)
    if known is not None and draft.settings is not None:
        strange = check_unknown_names(draft.settings, known)
        found += [fault for fault in strange if fault.place[0] == "policies"]
    if steps is not None and draft.settings is not None:
        found += promise_faults(draft.settings, steps, at_policies=True)
    return make_report(name, document, draft, found)


def find_contradictions(draft: SettingsDraft) -> list[ConfigFault]:
    """Return the contradictions between settings."""
    if draft.settings is None:
        return []
    return list(chain.from_iterable(check(draft.settings) for check in CHECKS))


def make_report(
    name: str, document: ConfigDocument, draft: SettingsDraft, found: Sequence[ConfigFault]
) -> ConfigReport:
    """Return the report: faults with lines, in their order, without consequences of others."""
    own = [fault for fault in found if not draft.is_consequence(fault)]
    faults = independent_faults([*draft.faults, *own], draft.broken)
    placed = [
        fault if fault.line is not None else replace(fault, line=document.line(fault.place))
        for fault in faults
    ]
    ordered = tuple(sorted(placed, key=lambda fault: (fault.line or 0, fault.path)))
    is_sound = not any(fault.severity == "error" for fault in ordered)
    return ConfigReport(name, draft.settings if is_sound else None, ordered)


def _settings_of(examined: ConfigReport) -> Settings:
    if examined.settings is None:
        raise ConfigError(examined.lines)
    return examined.settings
