"""What is special about Cursor."""
