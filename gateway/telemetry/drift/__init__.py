"""Drift detection: live requests of consenting teams, repeated on a baseline model."""
