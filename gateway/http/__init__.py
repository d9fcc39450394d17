"""HTTP/1.1 as clients speak it: bounds of connections, heads, bodies and forms; CORS."""
