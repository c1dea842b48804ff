"""What is special about programs that run under ``holdfast wrap``."""
