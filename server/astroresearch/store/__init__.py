"""The only SQL: domain objects in, domain objects out."""
