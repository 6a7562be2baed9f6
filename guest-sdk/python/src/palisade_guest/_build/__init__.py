"""Builds plugins. Runs on the author's machine only, never inside of the sandbox."""
