-- Boxes of the lines of a passage that OCR has read, in ten-thousandths of the page. NULL: none.
ALTER TABLE passages ADD COLUMN boxes bigint[];
ALTER TABLE passages ALTER boxes SET STATISTICS 0;
