"""Whether a configuration fits the world around it: prices, directories, GPUs, names, hosts.

`breakeven check` and every start ask that, beside what `gateway.config.settings` finds in the file.
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
    """Everything that can be said about the file; of variables and hosts only with `environ`.

    `asks_engines`: flags are judged by the installed vLLM, which a start does later by itself.
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
