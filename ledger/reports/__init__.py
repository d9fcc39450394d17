"""The books looked at: spend, movements, one request's time."""
