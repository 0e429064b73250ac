"""LaTeX and BibTeX as pure text to data: no I/O, never an exception."""
