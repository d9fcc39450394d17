"""What a machine is asked when a gateway does not run as it should: one look, nothing changed."""
