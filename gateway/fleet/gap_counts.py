"""Histogram bounds of the gaps between a stream's chunks, for requests and for metrics."""

# Bounds of OpenTelemetry's `gen_ai.server.time_per_output_token`, with finer ones below.
PACE_BOUNDS_S = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
)  # fmt: skip
GAP_BUCKETS = len(PACE_BOUNDS_S) + 1  # the last one is unbounded
