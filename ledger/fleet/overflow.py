"""Which spills are overflow: those that more engine would have kept.

A spilled attempt names why no own engine took it, in the router's words. Only a lack of capacity
says anything about capacity; everything else is neither load of the engines nor their overflow.
"""

LACK_OF_CAPACITY = frozenset(
    {
        "kv_headroom",  # the cache had no room for it
        "ttft",  # its first token would have come too late behind the others
        "tpot",  # one sequence too many for the promised pace
        "bid_price",  # a loaded engine kept its time for work that is worth more
        "busier",  # held against another replica's load
    }
)

AWAY = frozenset(
    # More of the same engines would have been as much away; the bill's hours show it.
    {"unhealthy", "loading", "draining", "unknown_state", "circuit_open"}
)

CANNOT_SERVE = frozenset(
    # No number of engines would have kept it.
    {"model", "feature", "context", "residency", "salt", "quality"}
)

BY_CHOICE = frozenset(
    # Money or order decided, it could wait, the engine was chosen and failed, or there was none.
    {
        "costlier", "unpriced", "price_cap", "budget", "rate_limit",
        "cheapest", "sticky", "only", "best_effort", "batch", "weight", "canary", "candidates",
        "static", "disabled",
    }
)  # fmt: skip
