"""Speaks the Language Server Protocol; nothing else does."""
