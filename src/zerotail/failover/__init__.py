"""The bad day: follow, takeover, handover, rejoin."""
