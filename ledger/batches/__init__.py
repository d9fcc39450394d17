"""Batches and their files: kept, claimed fairly, answered once."""
