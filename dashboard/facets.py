"""Values that filters of single requests offer: those that occur with all other choices.

Which of them do is known from the sums that the page has read anyway. A combination that nothing
matches is so neither offered nor looked for: to find nothing, the books read every attempt of a
target, which are hundreds of thousands.
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
    """By facet; what is chosen stays on offer, also where nothing has it any more."""
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
    """Whether any attempt has all that is chosen."""
    return any(all(FACETS[name](cell) == value for name, value in chosen.items()) for cell in cells)
