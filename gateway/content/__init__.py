"""Detectors of text that may not leave, and how they read every part of a request."""
