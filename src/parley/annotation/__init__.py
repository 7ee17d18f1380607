"""People compare conversations and vote."""
