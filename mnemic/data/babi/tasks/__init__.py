"""Makers of stories: one function a bAbI task, from dice to a story with its questions.

The rules are those of Weston et al. 2015 as far as the paper tells them, and otherwise what the
official files show when they are counted: which events are possible, how one of them is drawn,
which questions may be asked and which of them is.
"""
