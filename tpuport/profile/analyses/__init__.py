"""What a session shows: one module an analysis, each from records to a section."""
