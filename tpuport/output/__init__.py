"""One module an output format. Only these and `cli` know rich."""
