"""Rate limits of requests and tokens a minute, and the admission queue."""
