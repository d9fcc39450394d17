"""Filter values for single requests: those that occur with all other choices.

They are computed from the sums that the page has read anyway. A combination without matches is
neither offered nor queried: finding none would read every attempt of a target, hundreds of
thousands.
"""

from collections.abc import Callable, Iterable, Mapping

from ledger.queries.reads import AttemptCell

FACETS: dict[str, Callable[[AttemptCell], str | None]] = {
    "team": lambda cell: cell.team,
    "model": lambda cell: cell.model,
    "target": lambda cell: cell.target,
    "spill reason": lambda cell: cell.spill_reason,
}


def offered_values(cells: Iterable[AttemptCell], chosen: Mapping[str, str]) -> dict[str, list[str]]:
    """Return values by facet; a chosen value stays on offer even without matches."""
    found: dict[str, set[str]] = {
        name: {chosen[name]} if name in chosen else set() for name in FACETS
    }
    for cell in cells:
        has = {name: of(cell) for name, of in FACETS.items()}
        missed = [name for name, value in chosen.items() if has[name] != value]
        for name, value in has.items():
            if value and all(missed_name == name for missed_name in missed):
                found[name].add(value)
    return {name: sorted(values) for name, values in found.items()}


def is_present(cells: Iterable[AttemptCell], chosen: Mapping[str, str]) -> bool:
    """Return whether any attempt matches all choices."""
    return any(all(FACETS[name](cell) == value for name, value in chosen.items()) for cell in cells)
