"""Where checkpoints live: one protocol, peers of the same shape."""
