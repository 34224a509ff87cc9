"""The one exception a user sees: a sentence that says what was wrong, where, and what to do next."""


class WanderError(Exception):
    """Something the user can put right. The command line prints the sentence and exits with code 2."""
