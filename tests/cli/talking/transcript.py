"""Takes the place of the transcript that the program "generic" has not got."""

from tests.cli.talks import TRANSCRIPT

__all__ = ["TRANSCRIPT"]
