"""Tools on the files of the workspace."""
