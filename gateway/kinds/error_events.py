"""The event that ends a stream with an error."""

import msgspec


def error_event(message: str, type_: str, code: str | None) -> bytes:
    """Return the event that reports an error within a stream, and ends it."""
    error = {"message": message, "type": type_, "param": None, "code": code}
    return b"data: " + msgspec.json.encode({"error": error}) + b"\n\n"
