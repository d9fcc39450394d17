"""Messages of KEDA's external scaler (package `externalscaler`), created at import.

Field numbers are from KEDA's documentation of external scalers. Both the integer and the
floating-point field of a metric are set, because older releases read only the first.
"""

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "externalscaler"
SERVICE = f"{PACKAGE}.ExternalScaler"
_TEXT, _FLAG, _WHOLE, _REAL, _NESTED = (
    FieldDescriptorProto.TYPE_STRING,
    FieldDescriptorProto.TYPE_BOOL,
    FieldDescriptorProto.TYPE_INT64,
    FieldDescriptorProto.TYPE_DOUBLE,
    FieldDescriptorProto.TYPE_MESSAGE,
)
# Fields of each message by number, from 1: name, type, nested message.
# `scalerMetadata` is a map, which on the wire is a repeated pair of key and value.
_FIELDS: dict[str, tuple[tuple[str, Any, str | None], ...]] = {
    "MetadataEntry": (("key", _TEXT, None), ("value", _TEXT, None)),
    "ScaledObjectRef": (
        ("name", _TEXT, None),
        ("namespace", _TEXT, None),
        ("scalerMetadata", _NESTED, "MetadataEntry"),
    ),
    "IsActiveResponse": (("result", _FLAG, None),),
    "MetricSpec": (
        ("metricName", _TEXT, None),
        ("targetSize", _WHOLE, None),
        ("targetSizeFloat", _REAL, None),
    ),
    "GetMetricSpecResponse": (("metricSpecs", _NESTED, "MetricSpec"),),
    "GetMetricsRequest": (
        ("scaledObjectRef", _NESTED, "ScaledObjectRef"),
        ("metricName", _TEXT, None),
    ),
    "MetricValue": (
        ("metricName", _TEXT, None),
        ("metricValue", _WHOLE, None),
        ("metricValueFloat", _REAL, None),
    ),
    "GetMetricsResponse": (("metricValues", _NESTED, "MetricValue"),),
}
_REPEATED = frozenset({"scalerMetadata", "metricSpecs", "metricValues"})


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="breakeven_externalscaler.proto", package=PACKAGE)
    file.syntax = "proto3"
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field_name, kind, nested) in enumerate(fields, start=1):
            field = message.field.add(name=field_name, number=number, type=kind)
            repeated = field_name in _REPEATED
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED
                if repeated
                else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if nested is not None:
                field.type_name = f".{PACKAGE}.{nested}"
    pool = DescriptorPool()
    pool.Add(file)
    return {
        name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _FIELDS
    }


_CLASSES = _classes()
ScaledObjectRef = _CLASSES["ScaledObjectRef"]
IsActiveResponse = _CLASSES["IsActiveResponse"]
MetricSpec = _CLASSES["MetricSpec"]
GetMetricSpecResponse = _CLASSES["GetMetricSpecResponse"]
GetMetricsRequest = _CLASSES["GetMetricsRequest"]
MetricValue = _CLASSES["MetricValue"]
GetMetricsResponse = _CLASSES["GetMetricsResponse"]


def metadata_of(reference: Any) -> dict[str, str]:
    """Return the `metadata` of a trigger in a ScaledObject."""
    return {entry.key: entry.value for entry in reference.scalerMetadata}
