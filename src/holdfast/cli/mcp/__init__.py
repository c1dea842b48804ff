"""``holdfast mcp``: the Model Context Protocol on standard input and output.

``json_rpc`` reads and writes messages, ``protocol`` knows what is to be answered, ``stdio`` moves
bytes, ``tool_table`` says what is offered; none of them knows of stores. ``tools`` does the work,
and is imported for the first call: an agent asks for the tools before its first request, and goes
without those that come late.
"""
