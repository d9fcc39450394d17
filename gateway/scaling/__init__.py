"""Pools that size themselves: plans, current engines, and the steps from one to the other."""
