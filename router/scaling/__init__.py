"""Number of engines that a pool should have, computed in dollars: pure, without a clock."""
