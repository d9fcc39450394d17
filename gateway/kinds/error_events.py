"""The event that ends a stream with an error."""

import msgspec


def error_event(message: str, type_: str, code: str | None) -> bytes:
    """Return the one event that tells a client, mid-stream, that its answer ends here."""
    error = {"message": message, "type": type_, "param": None, "code": code}
    return b"data: " + msgspec.json.encode({"error": error}) + b"\n\n"
