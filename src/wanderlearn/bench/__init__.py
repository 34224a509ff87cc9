"""Measurements of speed, always as ratios taken in one run."""
