"""Traces and metrics by OpenTelemetry's protocol, where the configuration names a collector.

A request that is followed costs its worker 0.13 ms of CPU for its spans and 0.04 ms for the
histograms; one that is not sampled 0.01 ms. Without a collector nothing of this is loaded.
"""
