"""The HTTP surface and the only package that knows backends, router and ledger."""
