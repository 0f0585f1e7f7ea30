-- Questions that a network wrote ahead for a passage, one per line, as further keys of it. They have
-- an index of their own, so that no search of words takes them for words of a document. ``keys`` has
-- their vectors, as ``sentence_keys`` packs them. NULL: they are still to be computed.
CREATE TABLE questions (
    passage INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    keys BLOB
);
CREATE VIRTUAL TABLE question_lexicon USING fts5 (
    words, tokenize = 'porter unicode61 remove_diacritics 2'
);
