"""Tools of the session itself."""
