"""Moving in what LangGraph's own savers have written; it is only read."""
