"""What is special about Gemini CLI."""
