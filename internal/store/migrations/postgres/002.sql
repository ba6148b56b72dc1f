-- oldest: 1
-- The oldest schema that a program may know to work with these tables: so two
-- versions of Ken can run beside each other.
ALTER TABLE ken_schema ADD COLUMN least integer NOT NULL DEFAULT 1;
