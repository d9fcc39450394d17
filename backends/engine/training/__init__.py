"""Training of the model that `make run` serves, and the model itself (`model/`)."""
