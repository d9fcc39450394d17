"""`value`: a dataclass that is frozen for the type checker and cheap at run time.

Values built for every request and candidate must be cheap, and a frozen dataclass takes six times
as long to build as a slotted one. Assigning to a field is therefore an error in `make check` and is
not detected at run time.
"""

from typing import TYPE_CHECKING

__all__ = ["value"]

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass

    def value(*, frozen: bool, slots: bool) -> type:
        """Return a slotted `dataclass` decorator, hashable like a frozen one."""
        return dataclass(slots=slots, unsafe_hash=frozen)
