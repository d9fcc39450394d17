"""The configuration file: its sections, how it is read, and all that can be wrong with it."""
