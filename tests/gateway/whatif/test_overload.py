"""Five times what an engine can do, in virtual time: it goes on at its best, and soon forgets it.

The control: one that takes everybody in keeps nobody's promise, and is late for long after.
"""

import pytest

from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayChoice, ReplayOutcome

PHASE_S = 60.0
RECOVERED_S = 10.0


class TakesAll:
    """The control: every request goes to the engine at once."""

    def choose(self, arrival, seats, now_s, worker):
        return ReplayChoice(seats[0], arrival.prompt_tokens, 2000)

    def on_ended(self, outcome) -> None: ...

    def tick(self, seats, now_s) -> None: ...


def phases(poisson, rates: tuple[float, ...]):
    found = []
    for place, rate in enumerate(rates):
        some = poisson(rate, round(rate * PHASE_S), ("inside",), seed=place + 1)
        found += [item._replace(at_s=item.at_s + PHASE_S * place) for item in some]
    return sorted(found, key=lambda finding: finding.at_s)


def goodput(
    outcomes: list[ReplayOutcome], slo, since_s: float, until_s: float
) -> tuple[float, float]:
    """Answers a second that kept their promise, and their share of what was asked in that time."""
    asked = [outcome for outcome in outcomes if since_s <= outcome.arrival.at_s < until_s]
    kept = sum(request.engine is not None and request.has_met_slo(slo) for request in asked)
    return kept / (until_s - since_s), kept / len(asked)


def played(house, under, arrivals, chooser=None) -> tuple[list[ReplayOutcome], object]:
    planned = PolicyReplay(house, under("alone"), arrivals[-1].at_s)
    slo = under("alone").policies[0].slo
    replay = Replay(planned.seats, {"inside": slo}, arrivals, ())
    return replay.run(chooser or planned), slo


@pytest.fixture(scope="module")
def peak_per_s(house, under, poisson) -> float:
    """The best of some steady loads."""
    found = []
    for rate in (6.0, 10.0, 14.0, 18.0):
        outcomes, slo = played(house, under, phases(poisson, (rate,)))
        found.append(goodput(outcomes, slo, RECOVERED_S, PHASE_S)[0])
    return max(found)


def test_overload_keeps_goodput_and_ends_when_it_ends(house, under, poisson, peak_per_s) -> None:
    rates = (peak_per_s, 5 * peak_per_s, 0.8 * peak_per_s)
    arrivals = phases(poisson, rates)
    outcomes, slo = played(house, under, arrivals)
    held, _ = goodput(outcomes, slo, PHASE_S, 2 * PHASE_S)
    _, after = goodput(outcomes, slo, 2 * PHASE_S + RECOVERED_S, 3 * PHASE_S)
    print(f"\npeak {peak_per_s:.2f}/s; at five times of it {held:.2f}/s ({held / peak_per_s:.3f});")
    print(f"{RECOVERED_S:.0f} s after it {after:.4f} of what is asked at 0.8 keeps its promise")
    assert held >= 0.9 * peak_per_s
    assert after >= 0.95
    outcomes, _ = played(house, under, arrivals, TakesAll())
    lost, _ = goodput(outcomes, slo, PHASE_S, 2 * PHASE_S)
    _, late = goodput(outcomes, slo, 2 * PHASE_S + RECOVERED_S, 3 * PHASE_S)
    print(f"taking all: {lost:.2f}/s ({lost / peak_per_s:.3f}), and {late:.4f} after it")
    assert lost < 0.2 * peak_per_s
    assert late < 0.5
