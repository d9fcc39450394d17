"""Exchange of in-flight load between hosts that use the same engines."""
