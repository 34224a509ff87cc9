"""`python -m wanderlearn.cli`: the same as `wander`, for launchers that start modules (torchrun -m)."""

from wanderlearn.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
