"""What is put around the user's script inside the child process. Each instrument sees one thing and writes records."""
