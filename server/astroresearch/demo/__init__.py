"""The demo: a stand-in for the services on 127.0.0.1, a sample manuscript and sample papers."""
