"""A worker's journal: what it promises the books, durable before its client reads the end."""
