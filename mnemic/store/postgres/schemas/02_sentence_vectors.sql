-- Sentence vectors, as ``sentence_keys`` packs them. NULL: written by an older version.
ALTER TABLE vectors ADD COLUMN keys bytea;
ALTER TABLE vectors ALTER keys SET STORAGE EXTERNAL, ALTER keys SET STATISTICS 0;
