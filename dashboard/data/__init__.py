"""Reads of the ledger within the viewer's permissions, cached between runs of a page."""
