"""Batches and their files: stored, claimed in fair order, answered once."""
