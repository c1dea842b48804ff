"""What is special about opencode."""
