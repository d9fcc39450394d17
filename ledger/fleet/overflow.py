"""Which spills are overflow: those that more engine would have kept.

A spilled attempt names why no own engine took it, in the router's words. Only a lack of capacity
says anything about capacity; everything else is neither load of the engines nor their overflow.
"""

from ledger.reasons import REASONS

LACK_OF_CAPACITY = frozenset(
    word for word, text in REASONS.items() if text.overflow == "lack_of_capacity"
)
