"""How the model that `make run` serves was trained, and the model itself (`model/`)."""
