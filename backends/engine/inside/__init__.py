"""Scripts for the engine's interpreter, which has torch; the product never imports them."""
