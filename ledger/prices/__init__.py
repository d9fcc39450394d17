"""Token prices: their sources, the price in force, and the effects of an import."""
