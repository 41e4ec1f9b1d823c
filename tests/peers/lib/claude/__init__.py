"""The real Claude Code on a scripted model server: what it does without us, and with us."""
