"""What is special about any other program."""
