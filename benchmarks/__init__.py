"""Holdfast and its peers on the same work, interleaved in one run: `python -m benchmarks`."""
