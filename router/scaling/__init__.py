"""The number of engines that a pool should have, in dollars: pure, without a clock."""
