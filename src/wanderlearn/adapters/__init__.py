"""Learners for people who live in other libraries: scikit-learn's verbs and river's.

`sklearn` and `river` each need that library (an extra of the same name); `memory` is what they share.
"""
