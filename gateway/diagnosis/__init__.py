"""Diagnosis of a machine whose gateway does not work; changes nothing."""
