"""Keys and people: who asks, and who may look."""
