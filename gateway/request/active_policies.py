"""The policies in force in one worker, and what is made from them: both change in one step.

A request is planned under one set, whole; the next one may be planned under another.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from gateway.config.settings import Settings
from ledger.overrides import Override

T = TypeVar("T")


class PolicyDerived(Generic[T]):
    """Compiled policies in force: `value` is another object once they change."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


class ActivePolicies:
    """`settings` with the policies in force, and their version, which attempts carry."""

    def __init__(self, settings: Settings, version: str, number: int = 0) -> None:
        """`number`: of the stored set that it was, 0 without one."""
        self.settings = settings
        self.version = version
        self.number = number
        self.overrides: tuple[Override, ...] = ()  # what operators hold over it
        self._made: list[Callable[[], Callable[[], None]]] = []

    def hold(self, make: Callable[[Settings, str], T]) -> PolicyDerived[T]:
        """Made now, and again of every later set."""
        held = PolicyDerived(make(self.settings, self.version))

        def again() -> Callable[[], None]:
            value = make(self.settings, self.version)

            def put() -> None:
                held.value = value

            return put

        self._made.append(again)
        return held

    def use(self, settings: Settings, version: str) -> None:
        """All or nothing: what cannot be made of the new set leaves everything as it was."""
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
