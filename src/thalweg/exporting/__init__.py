"""Metrics of a run in the words of other systems: Prometheus, OpenTelemetry, Storm's REST API."""
