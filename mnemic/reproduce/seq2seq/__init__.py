"""The table of sequence-to-sequence pre-training: noises, and what they are good for."""
