"""Request kinds in the ledger, whose words records hold as the gateway wrote them.

A kind that stands in no set here is counted, priced and exported as any other.
"""

from typing import Final

# Answers that are decoded token by token for a client: others have no output to compare.
CONVERSATION: Final = frozenset({"chat", "completion"})
