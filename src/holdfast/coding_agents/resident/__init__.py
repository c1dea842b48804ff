"""The helper of a project: a process that stays while an agent works, so that hooks are quick.

It holds the store, is told by the kernel which files change, and records what hooks tell it.
``meeting`` is where they meet, ``messages`` what they say, ``asking`` and ``starting`` the hook's
side; ``server``, ``work`` and ``agents`` are the helper.
"""
