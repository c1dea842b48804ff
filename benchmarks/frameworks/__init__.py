"""What 100 steps of an agent cost on each adapter, and by the framework's own persistence."""
