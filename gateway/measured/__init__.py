"""Requests that are no conversation: documents to rank, sound to write down."""
