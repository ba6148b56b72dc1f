ALTER TABLE ken_schema DROP COLUMN least;
