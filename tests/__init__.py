"""The tests, named by behaviour."""
