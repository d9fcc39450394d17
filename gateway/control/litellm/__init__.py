"""Import of keys, teams, users, budgets and spending from a LiteLLM proxy's database."""
