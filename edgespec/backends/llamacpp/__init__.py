"""Models on llama.cpp. Importing this is cheap; the native library is loaded by the first `load`."""

from edgespec.backends.llamacpp.load import load

__all__ = ["load"]
