"""Migrates copies of whole checkouts and counts what went wrong; run it with `python -m tests.corpus FOLDER...`."""
