"""Screens that come up over the chat."""
