"""One file a feature; no feature imports another."""
