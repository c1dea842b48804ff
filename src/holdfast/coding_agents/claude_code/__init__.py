"""What is special about Claude Code."""
