__version__ = "0.3.0"
"""The version of this Holdfast."""
