"""Configuration file: its sections, how it is read, and its checks."""
