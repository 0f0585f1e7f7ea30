CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    notes TEXT NOT NULL,
    previous INTEGER REFERENCES documents (id) ON DELETE SET NULL,
    remembered TEXT NOT NULL,
    retired TEXT,
    passages INTEGER NOT NULL DEFAULT 0,
    characters INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX documents_read ON documents (digest) WHERE retired IS NULL;
CREATE INDEX documents_previous ON documents (previous);
CREATE TABLE places (
    path TEXT PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX places_document ON places (document);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    what TEXT NOT NULL,
    path TEXT NOT NULL
);
CREATE INDEX events_document ON events (document);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    page INTEGER,
    text TEXT NOT NULL,
    words TEXT,
    UNIQUE (document, number)
);
CREATE TABLE sentences (
    passage INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    line INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (passage, start)
) WITHOUT ROWID;
CREATE TABLE vectors (
    passage INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
);
CREATE VIEW words_read AS
    SELECT passages.id AS id, coalesce(passages.words, passages.text) AS words
    FROM passages JOIN documents ON documents.id = passages.document
    WHERE documents.retired IS NULL;
CREATE VIRTUAL TABLE lexicon USING fts5 (
    words, content = 'words_read', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
