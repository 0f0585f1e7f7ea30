-- Sentence vectors, as ``sentence_keys`` packs them. No row: written by an older version. They
-- have their own table because a search reads all passage vectors, but few sentence vectors.
CREATE TABLE keys (
    passage INTEGER PRIMARY KEY REFERENCES vectors (passage) ON DELETE CASCADE,
    keys BLOB NOT NULL
);
