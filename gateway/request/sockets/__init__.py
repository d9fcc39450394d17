"""The Responses path over WebSockets: one connection, one turn after another."""
