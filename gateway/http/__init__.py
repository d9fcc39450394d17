"""HTTP/1.1 for clients: limits of connections, heads, bodies and forms."""
