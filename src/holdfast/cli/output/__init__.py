"""What commands print: lines, colours, tables, JSON and its schemas."""
