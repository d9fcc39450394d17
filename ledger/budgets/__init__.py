"""Hard and soft budgets: windows, holds, grants to hosts, and the broker for workers."""
