"""Keys, teams, users, budgets and spending out of the database of a LiteLLM proxy."""
