"""The arithmetic of `engine plan`, by what it is of: memory, speed, layouts, drafts, weights."""
