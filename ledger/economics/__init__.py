"""The formulas of cost per token, break-even, purchases and forecasts, without I/O."""
