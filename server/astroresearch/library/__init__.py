"""What we do with papers: find, get, read, index, retrieve, check, note, export."""
