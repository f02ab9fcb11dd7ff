"""Hosts reached through a transport: one file a transport."""
