"""One function per bAbI task that writes a random story with its questions.

The rules follow Weston et al. 2015 where the paper states them, and otherwise statistics of the
official files: which events are possible, how an event is drawn, which questions may be asked and
how one of them is chosen.
"""
