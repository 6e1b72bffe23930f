"""Profiling of an unmodified script in several execution modes."""
