"""The messages have KEDA's field numbers and types, as bytes that were written by hand."""

from gateway.scaling import keda_messages as messages


def test_the_wire_is_kedas() -> None:
    """Bytes written by hand: field 3 of a reference is a map, field 3 of a value a double."""
    pair = b"\x0a\x04pool\x12\x05llama"
    sent = b"\x0a\x01n\x12\x02ml\x1a" + bytes([len(pair)]) + pair
    found = messages.ScaledObjectRef.FromString(sent)
    assert (found.name, found.namespace) == ("n", "ml")
    assert messages.metadata_of(found) == {"pool": "llama"}
    value = messages.MetricValue(metricName="m", metricValue=3, metricValueFloat=3.0)
    assert value.SerializeToString() == b"\x0a\x01m\x10\x03\x19" + b"\x00" * 6 + b"\x08\x40"
