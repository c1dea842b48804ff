"""``holdfast hook``: what coding agents tell, and how it comes to be told."""
