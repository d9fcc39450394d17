"""Looks at a machine whose gateway does not run as it should; changes nothing."""
