"""Conversations of agents in one form that every framework's can be turned into and made of.

Pure functions between JSON forms: no framework is needed to read what one has written.
"""

from holdfast.core.conversation.conversation import FORMAT, SCHEMA_URL, Conversation, ToolCall
from holdfast.core.conversation.forms import FORMS, FRAMEWORKS, Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.normal import normal

__all__ = [
    "FORMAT",
    "FORMS",
    "FRAMEWORKS",
    "SCHEMA_URL",
    "Conversation",
    "Form",
    "Lost",
    "Native",
    "ToolCall",
    "normal",
]
