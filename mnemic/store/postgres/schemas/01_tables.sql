CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE documents (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest text NOT NULL,
    kind text NOT NULL,
    title text NOT NULL,
    notes text NOT NULL,
    previous bigint REFERENCES documents (id) ON DELETE SET NULL,
    remembered text NOT NULL,
    retired text,
    passages bigint NOT NULL DEFAULT 0,
    characters bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX documents_read ON documents (digest) WHERE retired IS NULL;
CREATE INDEX documents_previous ON documents (previous);
CREATE TABLE places (
    path text COLLATE "C" PRIMARY KEY,
    document bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    size bigint NOT NULL,
    modified bigint NOT NULL
);
CREATE INDEX places_document ON places (document);
CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    at text COLLATE "C" NOT NULL,
    what text NOT NULL,
    path text NOT NULL
);
CREATE INDEX events_document ON events (document);
CREATE INDEX events_path ON events USING hash (path);
CREATE TABLE passages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    number bigint NOT NULL,
    page bigint,
    text text NOT NULL,
    sentences bigint[] NOT NULL,
    UNIQUE (document, number)
);
CREATE TABLE lexicon (
    passage bigint PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    stems tsvector NOT NULL,
    length bigint NOT NULL
);
CREATE INDEX lexicon_stems ON lexicon USING gin (stems) WITH (gin_pending_list_limit = 1024);
CREATE TABLE vectors (
    passage bigint PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    vector halfvec NOT NULL
);
CREATE TEXT SEARCH DICTIONARY stem (TEMPLATE = pg_catalog.snowball, Language = porter);
ALTER TABLE documents ALTER title SET STORAGE EXTERNAL, ALTER title SET STATISTICS 0,
    ALTER notes SET STORAGE EXTERNAL, ALTER notes SET STATISTICS 0,
    ALTER digest SET STATISTICS 0;
ALTER TABLE places ALTER path SET STATISTICS 0;
ALTER TABLE events ALTER path SET STATISTICS 0;
ALTER TABLE passages ALTER text SET STORAGE EXTERNAL, ALTER text SET STATISTICS 0;
ALTER TABLE lexicon ALTER stems SET STORAGE EXTERNAL, ALTER stems SET STATISTICS 0;
ALTER TABLE vectors ALTER vector SET STORAGE PLAIN, ALTER vector SET STATISTICS 0;
