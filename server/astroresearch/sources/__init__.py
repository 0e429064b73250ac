"""The outside world over HTTP: ADS, arXiv, CDS."""
