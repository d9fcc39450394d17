"""V(n), the API cost that n engines avoid: one curve for verdict, what-if and planner.

A period is split into windows. In each, traffic is counted by class (`TrafficClass`: one price at
APIs and one demand of engine time), separately for kept tokens and tokens bought for lack of
capacity. With fewer engines, work leaves in the router's order: least avoided cost per engine time
first (`DepartureOrder.ROUTER`). For the other end of the interval, all movable classes leave in
proportion (`PRO_RATA`). Work that may not leave is served first and may wait within a stretch of
windows; numbers that cannot hold a stretch are not allowed. More engines take back bought tokens,
most avoided cost per engine time first. Money is pico-USD. `ROUTER` is exact; `PRO_RATA` is rounded
to 10^-6 pico-USD per window, because exact shares of 43,200 windows have no common divisor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import lcm

from ledger.economics.cost import Exact
from ledger.money import divide_half_even

_FINE = 10**6  # a window's pro rata cost is rounded to this part of a pico-USD


class DepartureOrder(StrEnum):
    """The order in which work leaves when engines are removed."""

    ROUTER = "router"
    PRO_RATA = "pro rata"


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """Requests with one price at APIs.

    `pusd_per_token` is the price at the cheapest API that policy, residency and features allow,
    `None` if there is none. `work` is engine time per token, in a unit that all classes share.
    `movable` is false if requests may not leave, or if that is unknown.
    """

    name: str
    pusd_per_token: Exact | None
    movable: bool
    work: int = 1

    @property
    def leaves(self) -> bool:
        """Return whether the class can leave: it is movable and has a price at an API."""
        return self.movable and self.pusd_per_token is not None

    @property
    def density(self) -> Fraction:
        """Return avoided pico-USD per unit of engine time."""
        return Fraction(self.pusd_per_token or 0) / self.work


@dataclass(frozen=True, slots=True)
class TrafficWindow:
    """Tokens of each class in one window, in the order of the classes.

    `times` is the number of equal windows.
    """

    kept: tuple[int, ...]
    bought: tuple[int, ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class ValueCurve:
    """One pool in one period.

    `capacity` is the work of one engine in one window. While it is `None`, only 0 and the number
    that ran have a cost. `bought_pusd` is the cost of the bought tokens, by class. A window in
    which `engines` kept more than their capacity shows that they could. `stretches` are kept tokens
    by class, over `stretch_windows` windows each: work that may not leave is checked by stretch, or
    by window without any.
    """

    classes: tuple[TrafficClass, ...]
    windows: tuple[TrafficWindow, ...]
    engines: int
    capacity: Exact | None
    bought_pusd: tuple[int, ...]
    stretches: tuple[tuple[int, ...], ...] = ()
    stretch_windows: int = 1
    _memory: dict[tuple[int, DepartureOrder], Fraction] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _works: list[int] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def stays(self) -> tuple[str, ...]:
        """Return names of the classes with traffic that cannot leave."""
        return tuple(
            traffic.name
            for place, traffic in enumerate(self.classes)
            if not traffic.leaves and any(window.kept[place] for window in self.windows)
        )

    def staying_tokens(self, name: str) -> int:
        """Return the tokens of the period that this class kept on own engines."""
        places = [place for place, traffic in enumerate(self.classes) if traffic.name == name]
        return sum(window.times * window.kept[place] for window in self.windows for place in places)

    @property
    def has_traffic(self) -> bool:
        return any(any(window.kept) or any(window.bought) for window in self.windows)

    def objection(self, engines: int) -> str | None:
        """Return why this number of engines is not allowed, or `None` if it is."""
        if engines >= self.engines and (self.capacity is not None or engines == self.engines):
            return None
        if engines == 0:
            stays = self.stays
            return f"{', '.join(stays)} may not leave" if stays else None
        if not self.has_traffic:
            return None
        if self.capacity is None:
            return "capacity not known"
        if any(excess > 0 for excess in self._forced(engines)):
            return f"{', '.join(self.stays)} may not leave and would not fit"
        return None

    def api_pusd(self, engines: int, order: DepartureOrder = DepartureOrder.ROUTER) -> Fraction:
        """Return the period's API cost with n engines. Raises `ValueError` if not allowed."""
        reason = self.objection(engines)
        if reason is not None:
            raise ValueError(reason)
        known = self._memory.get((engines, order))
        if known is None:
            known = self._memory[engines, order] = self._cost(engines, order)
        return known

    def avoided_pusd(self, engines: int, order: DepartureOrder = DepartureOrder.ROUTER) -> Fraction:
        """Return V(n): the API cost in pico-USD that n engines avoid."""
        return self.all_bought_pusd - self.api_pusd(engines, order)

    def at_apis(
        self, engines: int, order: DepartureOrder = DepartureOrder.ROUTER
    ) -> list[tuple[tuple[Fraction, ...], tuple[Fraction, ...], int]]:
        """Return the tokens at APIs by window: newly leaving by class, bought by class, count.

        The count is the number of such windows. Raises `ValueError` if the number is not allowed.
        """
        reason = self.objection(engines)
        if reason is not None:
            raise ValueError(reason)
        places = range(len(self.classes))
        none = tuple(Fraction(0) for _ in places)
        excess: dict[int, int] = {}
        if 0 < engines < self.engines:
            excess = {id(window): more for window, more in self._excess(engines)}
        found = []
        for window in self.windows:
            leaving, bought = none, tuple(map(Fraction, window.bought))
            if engines == 0:
                leaving = tuple(
                    Fraction(window.kept[n] if self.classes[n].leaves else 0) for n in places
                )
            elif id(window) in excess:
                leaving = self._gone(window, excess[id(window)], order)
            elif engines > self.engines:
                bought = self._still_bought(window, engines)
            if any(leaving) or any(bought):
                found.append((leaving, bought, window.times))
        return found

    def _still_bought(self, window: TrafficWindow, engines: int) -> tuple[Fraction, ...]:
        """Return the tokens of each class that are still bought with more engines."""
        rest = max(0, self._stated(engines) - self._work(window.kept) * self._unit)
        still = list(map(Fraction, window.bought))
        for place in self._by_density(dearest_first=True):
            work = self.classes[place].work * self._unit
            part = min(rest, window.bought[place] * work)
            still[place], rest = still[place] - Fraction(part, work), rest - part
        return tuple(still)

    def _gone(
        self, window: TrafficWindow, excess: int, order: DepartureOrder
    ) -> tuple[Fraction, ...]:
        """Return the tokens of each class that leave a window."""
        unit = self._unit
        gone = [Fraction(0)] * len(self.classes)
        places = [n for n in self._by_density(dearest_first=False) if self.classes[n].leaves]
        whole = sum(window.kept[n] * self.classes[n].work for n in places) * unit
        if order is DepartureOrder.PRO_RATA:
            share = Fraction(min(excess, whole), whole) if whole else Fraction(0)
            for place in places:
                gone[place] = window.kept[place] * share
            return tuple(gone)
        rest = excess
        for place in places:
            work = self.classes[place].work * unit
            part = min(rest, window.kept[place] * work)
            gone[place], rest = Fraction(part, work), rest - part
        return tuple(gone)

    def _cost(self, engines: int, order: DepartureOrder) -> Fraction:
        if engines == 0:
            return self.all_bought_pusd
        paid = Fraction(sum(self.bought_pusd))
        if engines == self.engines or not self.has_traffic:
            return paid
        if engines > self.engines:
            return paid - self._taken_back(engines)
        if order is DepartureOrder.PRO_RATA:
            return paid + self._leaving_pro_rata(engines)
        return paid + self._leaving_in_order(engines)

    @property
    def all_bought_pusd(self) -> Fraction:
        """Return the API cost in pico-USD of all movable traffic and of today's bought tokens."""
        found = Fraction(sum(self.bought_pusd))
        for place, traffic in enumerate(self.classes):
            if traffic.leaves and traffic.pusd_per_token is not None:
                kept = sum(window.kept[place] * window.times for window in self.windows)
                found += kept * Fraction(traffic.pusd_per_token)
        return found

    @property
    def _unit(self) -> int:
        """Return the factor on work that makes shares of a capacity whole numbers."""
        return Fraction(self.capacity or 0).denominator * max(1, self.engines)

    def _stated(self, engines: int) -> int:
        """Return the work per window that these engines hold by capacity, in parts of `_unit`."""
        return engines * Fraction(self.capacity or 0).numerator * max(1, self.engines)

    def _shown(self, engines: int) -> int:
        """Return the parts of `_unit` per kept work that these engines hold, as observed."""
        return engines * Fraction(self.capacity or 0).denominator

    @property
    def _kept_works(self) -> list[int]:
        """Return the kept work of every window, computed once."""
        if not self._works:
            self._works.extend(self._work(window.kept) for window in self.windows)
        return self._works

    def _work(self, tokens: Sequence[int]) -> int:
        return sum(
            count * traffic.work for count, traffic in zip(tokens, self.classes, strict=True)
        )

    def _forced(self, engines: int) -> Iterator[int]:
        """Yield, by stretch, the work that may not leave above the capacity of these engines."""
        fixed = [place for place, traffic in enumerate(self.classes) if not traffic.leaves]
        if not fixed:
            return
        alone = [window.kept for window in self.windows]
        stated, shown = self._stated(engines) * self.stretch_windows, self._shown(engines)
        for kept in self.stretches or alone:
            work = sum(kept[place] * self.classes[place].work for place in fixed)
            yield work * self._unit - max(stated, shown * self._work(kept))

    def _excess(self, engines: int) -> Iterator[tuple[TrafficWindow, int]]:
        """Yield windows with more kept work than these engines hold, and the excess."""
        unit, stated, shown = self._unit, self._stated(engines), self._shown(engines)
        for window, kept in zip(self.windows, self._kept_works, strict=True):
            excess = kept * unit - max(stated, shown * kept)
            if excess > 0:
                yield window, excess

    def _by_density(self, *, dearest_first: bool) -> list[int]:
        places = range(len(self.classes))
        return sorted(
            places,
            key=lambda place: (self.classes[place].density, self.classes[place].name),
            reverse=dearest_first,
        )

    def _leaving_in_order(self, engines: int) -> Fraction:
        unit = self._unit
        order = [n for n in self._by_density(dearest_first=False) if self.classes[n].leaves]
        gone = [0] * len(self.classes)
        for window, excess in self._excess(engines):
            rest = excess
            for place in order:
                part = min(rest, window.kept[place] * self.classes[place].work * unit)
                gone[place] += part * window.times
                rest -= part
                if not rest:
                    break
        total = sum(
            (work * traffic.density for work, traffic in zip(gone, self.classes, strict=True)),
            Fraction(0),
        )
        return total / unit

    def _leaving_pro_rata(self, engines: int) -> Fraction:
        """Return the cost of leaving work if movable classes leave each window in proportion."""
        priced = [place for place, traffic in enumerate(self.classes) if traffic.leaves]
        prices = [Fraction(self.classes[place].pusd_per_token or 0) for place in priced]
        scale = lcm(*(price.denominator for price in prices)) if prices else 1
        whole = [int(price * scale) for price in prices]
        unit, found = self._unit, 0
        for window, excess in self._excess(engines):
            tokens = [window.kept[place] for place in priced]
            work = sum(
                count * self.classes[place].work
                for count, place in zip(tokens, priced, strict=True)
            )
            value = sum(count * price for count, price in zip(tokens, whole, strict=True))
            if work:
                leaving = min(excess, work * unit)
                cost = divide_half_even(leaving * value * _FINE, work * unit * scale)
                found += cost * window.times
        return Fraction(found, _FINE)

    def _taken_back(self, engines: int) -> Fraction:
        """Return the cost of bought tokens that fit on the additional engines."""
        unit, stated = self._unit, self._stated(engines)
        works = [traffic.work * unit for traffic in self.classes]
        back = [0] * len(self.classes)
        order = self._by_density(dearest_first=True)
        for window, kept in zip(self.windows, self._kept_works, strict=True):
            rest = stated - kept * unit
            if rest <= 0 or not any(window.bought):
                continue
            for place in order:
                if rest <= 0:
                    break
                part = min(rest, window.bought[place] * works[place])
                back[place] += part * window.times
                rest -= part
        found = Fraction(0)
        for place, work in enumerate(back):
            bought = sum(window.bought[place] * window.times for window in self.windows)
            if bought:
                paid = Fraction(self.bought_pusd[place], bought * self.classes[place].work)
                found += work * paid
        return found / unit
