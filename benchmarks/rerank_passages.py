"""Measure how many passages ``ask`` should read, on SQuAD's held-out training articles.

    python benchmarks/rerank_passages.py SQUAD --memory held.db [--questions 1000]
        [--paragraphs 2000] [--rerank 5 10 20 30]

SQUAD is a folder with train-v1.1.json.gz. The memory has the paragraphs of the articles that the
shipped reader was not trained on, and of so many random articles of its training set that there
are --paragraphs; it is made once and reused. Questions about the held-out ones are sampled with a
fixed seed.
"""
