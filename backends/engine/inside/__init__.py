"""Scripts for the engine's Python interpreter, which has torch. The product never imports them."""
