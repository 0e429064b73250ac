"""The nouns of the field, as frozen dataclasses; imports nothing but the standard library."""
