"""The response cache: deterministic requests that were answered before, within one tenant."""
