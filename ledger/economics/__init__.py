"""The formulas: cost a token, break-even, purchases, forecasts. Pure."""
