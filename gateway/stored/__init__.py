"""HTTP endpoints of stored answers and conversations."""
