"""The response cache: stored answers to equal deterministic requests of one tenant."""
