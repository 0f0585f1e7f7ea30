-- Readings of all stations.
CREATE TABLE station (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    alarm_level_cm INTEGER NOT NULL DEFAULT 310
);
CREATE TABLE reading (
    station INTEGER REFERENCES station (id),
    at TIMESTAMP NOT NULL,
    level_cm INTEGER NOT NULL
);
-- Readings older than 12 years are moved to the archive by the job "attic".
CREATE INDEX reading_at ON reading (at);
