"""The reasons of a spill that count as overflow, because more engines would have kept it.

A spilled attempt names why no own engine took it, by a reason of the router. Only a lack of
capacity counts. Spills for other reasons are neither load of the engines nor overflow.
"""

from ledger.reasons import REASONS

LACK_OF_CAPACITY = frozenset(
    word for word, text in REASONS.items() if text.overflow == "lack_of_capacity"
)
