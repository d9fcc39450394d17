"""Checks of retiring models: successors must exist and last longer."""

from collections.abc import Iterator

from gateway.config.aliases import resolve_model, sections_behind
from gateway.config.faults import ConfigFault, suggest
from gateway.config.schema import ModelSection, Settings


def check_retirements(settings: Settings) -> Iterator[ConfigFault]:
    for name, model in settings.models.items():
        if not isinstance(model, ModelSection) or model.retirement is None:
            continue
        here, stated = ("models", name, "retirement"), model.retirement
        if stated.announced is not None and stated.announced > stated.retires:
            words = f"is after `retires` ({stated.retires}): it must be earlier"
            yield ConfigFault((*here, "announced"), words)
        successor = stated.successor
        if successor is None:
            continue
        place = (*here, "successor")
        if resolve_model(settings, successor) is None:
            hint = suggest(successor, set(settings.models) - {name})
            words = f"`{successor}` leads to no model{hint}"
            yield ConfigFault(place, words, about=("models", successor))
            continue
        ends = [
            section.retirement.retires
            for section in sections_behind(settings, successor)
            if section.retirement is not None
        ]
        if ends and min(ends) <= stated.retires:
            words = f"`{successor}` retires on {min(ends)} itself, not after {stated.retires}"
            yield ConfigFault(place, words, upon=(("models", successor),))
