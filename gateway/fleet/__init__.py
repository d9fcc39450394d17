"""Every place that a request can go, and what is known of each at this moment."""
