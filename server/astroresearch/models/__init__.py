"""Language models and embedders behind the engine's and the library's interfaces."""
