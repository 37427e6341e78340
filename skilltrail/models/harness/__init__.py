"""Agent programs behind the door: the Codex CLI, Claude Code, and any other by `exec`.

One call is one process in a fresh folder, started without a shell, its prompt on standard
input, its environment an allow-list, its whole process group ended with it.
"""
