"""Coding agents: programs that edit files and tell hooks what they do.

What a program tells becomes a ``Told``; a ``Recorder`` keeps the files and the conversation with it
as a checkpoint; rewinding puts both back. What differs between programs is in a package each:
``program`` (its events and tools), ``transcript`` (its conversations), ``settings`` (its hooks).
"""
