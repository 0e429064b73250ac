"""AstroResearch: a language server with a research agent for astronomers who write LaTeX."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("astroresearch")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
