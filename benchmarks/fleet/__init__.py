"""Many processes that write to one PostgreSQL server, and what they wait for."""
