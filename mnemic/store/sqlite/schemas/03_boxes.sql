-- Boxes of the lines of a passage that OCR has read, in ten-thousandths of the page.
CREATE TABLE boxes (
    passage INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    x_min INTEGER NOT NULL,
    top INTEGER NOT NULL,
    x_max INTEGER NOT NULL,
    bottom INTEGER NOT NULL,
    PRIMARY KEY (passage, number)
) WITHOUT ROWID;
