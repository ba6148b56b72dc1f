package db

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"UPDATE orders SET paid = 1 WHERE id = ?":                                        "changes orders",
		"update Orders set paid = 1":                                                     "changes Orders | update: changes every row, because there is no WHERE that names a column",
		"DELETE FROM \"order items\"":                                                    "changes order items | DELETE: removes every row, because there is no WHERE that names a column",
		"INSERT INTO main.log SELECT * FROM orders JOIN people p ON p.id=orders.p":       "changes main.log; reads orders, people",
		"INSERT OR REPLACE INTO a VALUES ('UPDATE b') -- DELETE FROM c":                  "changes a",
		"INSERT INTO a VALUES (1) ON CONFLICT DO UPDATE SET x = 1":                       "changes a",
		"DROP TABLE IF EXISTS old_orders":                                                "changes old_orders | DROP: removes it with everything in it",
		"CREATE TABLE IF NOT EXISTS x (id int)":                                          "changes x",
		"TRUNCATE TABLE x":                                                               "changes x | TRUNCATE: removes every row",
		"/* FROM y */ WITH w AS (SELECT 1) DELETE FROM x WHERE id IN (SELECT id FROM w)": "changes x; reads w",
		"UPDATE a SET x = b.x FROM b WHERE b.id = a.id":                                  "changes a; reads b",
		"UPDATE a SET x = (SELECT y FROM b WHERE b.id = 1)":                              "changes a; reads b | UPDATE: changes every row, because there is no WHERE that names a column",
		`DELETE FROM a AS "where"`:                                                       "changes a | DELETE: removes every row, because there is no WHERE that names a column",
		"DELETE FROM a WHERE 1 = 1 AND (TRUE)":                                           "changes a | DELETE: removes every row, because there is no WHERE that names a column",
		"DELETE FROM a WHERE (id) = 1 ORDER BY id":                                       "changes a",
		"DELETE FROM a WHERE EXISTS (SELECT 1)":                                          "changes a",
		"DELETE FROM a RETURNING (SELECT 1) + x":                                         "changes a | DELETE: removes every row, because there is no WHERE that names a column",
		"DROP TABLE a, b":                                                                "changes a, b | DROP: removes it with everything in it",
		"ALTER TABLE a DROP COLUMN b":                                                    "changes a | DROP: removes it with everything in it",
		"INSERT INTO a SELECT x, y FROM b, c d, (SELECT 1 FROM e, f) WHERE g IN (h, i)":  "changes a; reads b, c, e, f",
		"CREATE TABLE a AS SELECT b, c FROM d ORDER BY e, f":                             "changes a; reads d",
		"VACUUM": "Ken cannot tell which tables the statement changes",
		"'":      "Ken cannot tell which tables the statement changes",
	} {
		if got := previewed(sql, SQLite); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	if got := tables(sqlWords("SELECT 1", SQLite), verbQuery); got != "reads no table that the statement names" {
		t.Errorf("SELECT 1: %s", got)
	}
}

// previewed is what a person is told of a statement: its tables, and its marks.
func previewed(sql, engine string) string {
	words := sqlWords(sql, engine)
	got := tables(words, verbExecute)
	for _, m := range everyRow(words) {
		got += " | " + sql[m.From:m.To] + ": " + m.Why
	}
	return got
}

// TestTablesPostgres: what PostgreSQL takes for a comment, a text or a label is none
// of a statement's keywords.
func TestTablesPostgres(t *testing.T) {
	t.Parallel()
	const all = "changes a | DELETE: removes every row, because there is no WHERE that names a column"
	for sql, want := range map[string]string{
		"DELETE FROM a /* /* */ WHERE x = 1 */":      all,
		"DELETE FROM a RETURNING $$ WHERE x = 1 $$":  all,
		"DELETE FROM a RETURNING $q$ $$ WHERE x $q$": all,
		`DELETE FROM a RETURNING E'\' WHERE x = 1 '`: all,
		"DELETE FROM a RETURNING id AS where":        all,
		"EXPLAIN ANALYZE DELETE FROM a":              all,
		"DELETE FROM a WHERE b[1] = $1":              "changes a",
		"TRUNCATE a, ONLY b CASCADE":                 "changes a, b | TRUNCATE: removes every row",
		"DELETE FROM a USING b, c WHERE a.x = b.x":   "changes a; reads b, c",
	} {
		if got := previewed(sql, Postgres); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}

// TestValuesText: no value looks like another one, or like two.
func TestValuesText(t *testing.T) {
	got := valuesText([]any{"x\n2: y", nil, "<nil>", int64(1), "1", true, []byte("ab")})
	want := "1: \"x\\n2: y\"\n2: NULL\n3: \"<nil>\"\n4: 1\n5: \"1\"\n6: true\n7: 2 bytes"
	if got != want {
		t.Errorf("valuesText() = %s\nwant %s", got, want)
	}
}

func FuzzSQLWords(f *testing.F) {
	f.Add("UPDATE [a] SET \"x\" = 'it''s' -- x\n/* y")
	f.Fuzz(func(t *testing.T, sql string) {
		for _, engine := range []string{SQLite, Postgres} {
			end := 0
			words := sqlWords(sql, engine)
			for _, w := range words {
				if w.from < end || w.to <= w.from || w.to > len(sql) || !strings.Contains(sql[w.from:w.to], w.text) && w.name {
					t.Fatalf("word %+v of %q", w, sql)
				}
				end = w.to
			}
			everyRow(words)
			tables(words, verbExecute)
		}
	})
}
