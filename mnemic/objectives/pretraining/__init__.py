"""Pre-training: choosing tokens of plain texts to predict, and the losses of predicting them."""
