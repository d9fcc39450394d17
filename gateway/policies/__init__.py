"""What policies and operators say, and how a running worker comes to follow it."""
