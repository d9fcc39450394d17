"""How many engines a pool should have, in dollars: pure, standard library, no clock of its own."""
