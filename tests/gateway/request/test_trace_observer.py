"""What follows requests is told everything that a `Story` and an `Observer` are told of."""

from gateway.request.trace_observer import Observer, Story
from gateway.telemetry.otel.exporting import Exporting, Followed


def verbs(protocol: type) -> set[str]:
    return {name for name, value in vars(protocol).items() if callable(value) and name[0] != "_"}


def test_who_follows_by_opentelemetry_hears_all_of_it() -> None:
    assert verbs(Story) == {"decided", "sends", "settled", "ends"} <= verbs(Followed)
    assert verbs(Observer) == {"begins", "close"} <= verbs(Exporting)
