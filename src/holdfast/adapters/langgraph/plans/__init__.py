"""What LangGraph asks of a checkpointer, as plans that either runtime carries out."""
