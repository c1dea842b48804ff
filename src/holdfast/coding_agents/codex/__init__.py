"""What is special about Codex."""
