"""Streaming Markdown: text split into blocks, blocks laid out as rows, rows drawn as strips."""
