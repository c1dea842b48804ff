"""One module for each framework: how it keeps a conversation, as ``FORM``."""
