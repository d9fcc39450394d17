"""Policies in force in one worker, and the objects compiled from them.

All of them change in one step. A request is planned under one policy set from start to end.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from gateway.config.settings import Settings
from ledger.overrides import Override

T = TypeVar("T")


class PolicyDerived(Generic[T]):
    """A holder of an object compiled from the policies in force; replaced on a change."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


class ActivePolicies:
    """Settings with the policies in force, and the policy version that attempts record."""

    def __init__(self, settings: Settings, version: str, number: int = 0) -> None:
        """Start from `settings`; `number` is that of the stored policy set, 0 without one."""
        self.settings = settings
        self.version = version
        self.number = number
        self.overrides: tuple[Override, ...] = ()  # overrides by operators
        self._made: list[Callable[[], Callable[[], None]]] = []

    def hold(self, make: Callable[[Settings, str], T]) -> PolicyDerived[T]:
        """Call `make` now and after each policy change; return the holder of its latest result."""
        held = PolicyDerived(make(self.settings, self.version))

        def again() -> Callable[[], None]:
            value = make(self.settings, self.version)

            def put() -> None:
                held.value = value

            return put

        self._made.append(again)
        return held

    def use(self, settings: Settings, version: str) -> None:
        """Replace the settings and their version, and rebuild all derived objects.

        If one of them cannot be built, nothing changes and the error is raised.
        """
        before = self.settings, self.version
        self.settings, self.version = settings, version
        try:
            puts = [again() for again in self._made]
        except BaseException:
            self.settings, self.version = before
            raise
        for put in puts:
            put()

    def overrule(self, overrides: tuple[Override, ...]) -> None:
        """Replace the overrides of the active policy set in one step, or not at all."""
        before, self.overrides = self.overrides, overrides
        try:
            self.use(self.settings, self.version)
        except BaseException:
            self.overrides = before
            raise
