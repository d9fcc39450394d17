"""What Prometheus reads, with closed label sets."""
