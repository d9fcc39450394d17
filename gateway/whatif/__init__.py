"""Simulations of recorded traffic with the real decision, in virtual time (what-ifs)."""
