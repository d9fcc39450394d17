"""Request kinds that the ledger treats specially, by the names in journal records.

A kind that is in no set here is counted, priced and exported like any other.
"""

from typing import Final

# Kinds whose answers are decoded token by token; other kinds have no output to compare.
CONVERSATION: Final = frozenset({"chat", "completion"})
