-- Questions that a network wrote ahead for a passage, one per line, as further keys of it. They have
-- an index of their own, so that no search of words takes them for words of a document. ``keys`` has
-- their vectors, as ``sentence_keys`` packs them. NULL: they are still to be computed.
CREATE TABLE questions (
    passage bigint PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    text text NOT NULL,
    keys bytea
);
CREATE TABLE question_lexicon (
    passage bigint PRIMARY KEY REFERENCES questions (passage) ON DELETE CASCADE,
    stems tsvector NOT NULL,
    length bigint NOT NULL
);
CREATE INDEX question_lexicon_stems ON question_lexicon USING gin (stems) WITH (gin_pending_list_limit = 1024);
ALTER TABLE questions ALTER text SET STORAGE EXTERNAL, ALTER text SET STATISTICS 0,
    ALTER keys SET STORAGE EXTERNAL, ALTER keys SET STATISTICS 0;
ALTER TABLE question_lexicon ALTER stems SET STORAGE EXTERNAL, ALTER stems SET STATISTICS 0;
