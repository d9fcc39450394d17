"""Programs that run on the engine's interpreter, which has torch; nothing of ours imports them."""
