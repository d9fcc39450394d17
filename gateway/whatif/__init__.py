"""Replays of recorded traffic with the production router, in virtual time."""
