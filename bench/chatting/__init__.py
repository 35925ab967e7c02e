"""Gateways that keep chats, each in processes of its own, and what is said in them."""
