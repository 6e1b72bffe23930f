"""What the formats in Markdown share."""


def cell(text: str) -> str:
    """Text for the cell of a table."""
    return text.replace("|", "\\|")
