"""Keys of clients, and the people who may use the dashboard."""
