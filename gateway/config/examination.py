"""Examination of a configuration with its surroundings: prices, directories, GPUs, hosts.

`breakeven check` and every start run it, in addition to the checks in `gateway.config.settings`.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from gateway.config.config_facts import PLAUSIBLE
from gateway.config.draft import draft_settings
from gateway.config.settings import ConfigReport, find_contradictions, make_report, read_file
from gateway.config.step_promises import chosen_limits
from gateway.config.surroundings import gather_facts


def examine(
    path: Path,
    *,
    at_us: int,
    environ: Mapping[str, str] | None = None,
    asks_engines: bool = False,
) -> ConfigReport:
    """Return all findings on the file; variables and hosts are checked only with `environ`.

    `asks_engines`: check flags with the installed vLLM, as a start does later itself.
    """
    document = read_file(path)
    draft = draft_settings(document)
    found = find_contradictions(draft)
    notes: tuple[str, ...] = ()
    if draft.settings is not None:
        facts = gather_facts(draft.settings, at_us, environ, asks_engines=asks_engines)
        found += chain.from_iterable(check(draft.settings, facts) for check in PLAUSIBLE)
        notes = (*facts.notes, *chosen_limits(draft.settings, facts.steps))
    return replace(make_report(str(path), document, draft, found), notes=notes)
