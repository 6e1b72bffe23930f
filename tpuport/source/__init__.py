"""Reading and writing of user files: which ones, in what encoding, and how they are replaced."""
