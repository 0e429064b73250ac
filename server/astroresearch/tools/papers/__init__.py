"""Tools on papers, objects and notes."""
