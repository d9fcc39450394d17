"""A bundle of the engine and its tools for a host without a network."""
