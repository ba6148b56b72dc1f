package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

func TestMain(m *testing.M) {
	Child() // the tests start this program for SQLite
	goleak.VerifyTestMain(m)
}

// shop makes an SQLite file with two tables.
func shop(t testing.TB, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path)
	executortest.Must(t, err)
	defer db.Close()
	for _, s := range append([]string{
		`CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE)`,
		`CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers(id), total NUMERIC DEFAULT 0, placed DATETIME, note BLOB)`,
		`CREATE INDEX orders_placed ON orders (placed, customer)`,
		`CREATE VIEW big AS SELECT * FROM orders WHERE total > 100`,
		`INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org'), (2, 'Bob | "B"', NULL), (9007199254740993, 'Big', 'b@example.org')`,
		`INSERT INTO orders VALUES (1, 1, 12.5, '2026-11-16 10:00:00', x'00ff'), (2, 1, 120, NULL, NULL)`,
	}, more...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
	return path
}

// rig makes an executor whose capabilities are those of some connections, and
// more.
func rig(t testing.TB, list []Connection, more ...capability.Capability) *Executor {
	t.Helper()
	known := map[capability.ID]*capability.Capability{}
	for _, tool := range Tools(list) {
		known[tool.Capability.ID] = &tool.Capability
	}
	for _, c := range more {
		known[c.ID] = &c
	}
	e, err := New(Config{
		Connections: func() []Connection { return list },
		Lookup: func(_ context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
			if c, ok := known[id]; ok {
				return c, capability.Detail{}, nil
			}
			return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(id)}
		},
		Secret: func(ref string) (string, error) { return "password of " + ref, nil },
	})
	executortest.Must(t, err)
	return e
}

type object = map[string]any

func do(t *testing.T, e *Executor, target string, args any) capability.Result {
	t.Helper()
	r, err := e.Invoke(t.Context(), executortest.Call(target, args))
	if err != nil {
		t.Fatalf("%s %v: %v", target, args, err)
	}
	return r
}

func text(r capability.Result) string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Text + string(p.JSON))
	}
	return b.String()
}

// has wants texts in a result.
func has(t *testing.T, r capability.Result, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text(r), w) {
			t.Errorf("the result is %.2000s, want %s in it", text(r), w)
		}
	}
}

// fails wants a failed result with a text in it.
func fails(t *testing.T, r capability.Result, want string) {
	t.Helper()
	if has(t, r, want); !r.Failed {
		t.Errorf("the call did not fail: %.2000s", text(r))
	}
}

// refuses wants an error with a text in it.
func refuses(t *testing.T, e *Executor, call capability.Call, want capability.ErrorKind, said string) {
	t.Helper()
	r, err := e.Invoke(t.Context(), call)
	if err == nil || kind(err) != want || !strings.Contains(err.Error(), said) {
		t.Errorf("%s %.200s = %.200s, %v; want %v with %q", call.Target, call.Arguments, text(r), err, want, said)
	}
}

func TestSQLite(t *testing.T) {
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: shop(t), Description: "What we sell."}})

	got := text(do(t, e, "tool:db_shop_inspect", object{}))
	want := `Database shop (SQLite), 3 tables and views, may be read.
What we sell.

view big
  id integer
  customer integer
  total numeric
  placed datetime
  note blob

table customers, 3 rows
  id integer primary key
  name text not null
  email text unique

table orders, 2 rows
  id integer primary key
  customer integer not null -> customers.id
  total numeric default 0
  placed datetime
  note blob
  index orders_placed (placed, customer)
`
	if got != want {
		t.Errorf("inspect = %s\nwant %s", got, want)
	}
	if got := text(do(t, e, "tool:db_shop_inspect", object{"table": "orders"})); !strings.Contains(got, "CREATE TABLE orders") || strings.Contains(got, "email") {
		t.Errorf("inspect orders = %s", got)
	}
	fails(t, do(t, e, "tool:db_shop_inspect", object{"table": "none"}), "table none not found")

	for _, c := range []struct{ format, want string }{
		{"markdown", "| id | name | email |\n|---|---|---|\n| 1 | Ada | ada@example.org |\n| 2 | Bob \\| \"B\" | NULL |\n| 9007199254740993 | Big | b@example.org |\n3 rows."},
		{"csv", "id,name,email\n1,Ada,ada@example.org\n2,\"Bob | \"\"B\"\"\",\n9007199254740993,Big,b@example.org\n"},
		{"json", `{"columns":["id","name","email"],"rows":[[1,"Ada","ada@example.org"],` + "\n" + `[2,"Bob | \"B\"",null],` + "\n" + `["9007199254740993","Big","b@example.org"]],"row_count":3,"complete":true}`},
	} {
		if got := text(do(t, e, "tool:db_shop_query", object{"sql": "SELECT * FROM customers ORDER BY id;", "format": c.format})); got != c.want {
			t.Errorf("%s = %s\nwant %s", c.format, got, c.want)
		}
	}
	values := object{"sql": "SELECT ?, ?, ?, ?, ?, ?, placed, note FROM orders WHERE id = ?", "format": "json",
		"parameters": []any{nil, true, json.Number("9223372036854775807"), 1.25, "x'); DROP TABLE orders --", object{"base64": "AP8="}, 1}}
	has(t, do(t, e, "tool:db_shop_query", values), `[null,1,"9223372036854775807",1.25,"x'); DROP TABLE orders --",{"bytes":2,"base64":"AP8="},"2026-11-16 10:00:00",{"bytes":2,"base64":"AP8="}]`)
	has(t, do(t, e, "tool:db_shop_explain", object{"sql": "SELECT * FROM orders WHERE placed > ?", "parameters": []any{"2026"}}),
		"orders_placed")
	for sql, want := range map[string]string{
		"SELECT missing FROM orders": "no such column: missing", "SELEC 1": `near "SELEC": syntax error`, "SELECT ?": "has 1 parameters, and 0 values",
		"SELECT 1; SELECT 2": "more than one statement", "-- nothing": "missing statement",
	} {
		fails(t, do(t, e, "tool:db_shop_query", object{"sql": sql}), want)
	}
	has(t, do(t, e, "command:db/query", object{"connection": "shop", "sql": "SELECT count(*) AS n FROM orders"}), "| 2 |")
}

// serverLimits: rows and bytes of a server end where they should and say so, and
// what runs on is stopped on the server: nothing is left there.
func serverLimits(t *testing.T, c Connection, many, long string, forever []string, left func() string) {
	t.Helper()
	c.Rows, c.Bytes = 50, 64<<10
	short, brief := c, c
	short.Name, short.Timeout = "short", 300*time.Millisecond
	brief.Name, brief.Timeout = "brief", 5*time.Second // MariaDB goes on for so long with a query whose caller is gone
	e := rig(t, []Connection{c, short, brief})
	none := func(what string) {
		t.Helper()
		testkit.Wait(t, what+": nothing is left at the server", func() bool { return left() == "0" })
	}
	r := do(t, e, "tool:db_crm_query", object{"sql": many})
	if has(t, r, "only the first 50 rows are shown, and there are more"); r.Meta["rows"] != "50" || r.Meta["truncated"] != "true" {
		t.Errorf("many rows = %v", r.Meta)
	}
	none("many rows")
	r = do(t, e, "tool:db_crm_query", object{"sql": long})
	if has(t, r, "left out", "yyyyyyyyyy"); len(text(r)) > 64<<10 {
		t.Errorf("a large value = %d bytes", len(text(r)))
	}
	for _, sql := range forever {
		refuses(t, e, executortest.Call("tool:db_short_query", object{"sql": sql}), capability.Timeout, "databases.short.timeout")
		none(sql)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		if _, err := e.Invoke(ctx, executortest.Call("tool:db_brief_query", object{"sql": sql})); kind(err) != capability.Unavailable {
			t.Errorf("%s cancelled: %v", sql, err)
		}
		none(sql)
	}
}

// TestRecipe: an action of a package brings the statement, and its arguments
// are values and nothing else.
func TestRecipe(t *testing.T) {
	action := func(id, runner string, argv ...string) capability.Capability {
		return capability.Capability{ID: capability.ID(id), Run: &capability.Recipe{Runner: runner, Argv: argv}}
	}
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: shop(t)}},
		action("command:find", "db.query", "shop", "SELECT id FROM customers WHERE name = ? OR ? IS NULL", "{name}", "{name}"),
		action("command:text", "db.query", "shop", "{sql}"), action("command:none", "db.query"), action("command:gone", "db.query", "lager", "SELECT 1"),
		action("command:verb", "db.drop", "shop", "SELECT 1"), action("command:write", "db.execute", "shop", "DELETE FROM orders"))
	has(t, do(t, e, "command:find", object{"name": "Ada"}), "| 1 |\n1 row.")
	has(t, do(t, e, "command:find", object{"name": "' OR 1=1 --"}), "0 rows")
	has(t, do(t, e, "command:find", object{}), "3 rows")
	for id, want := range map[string]struct {
		kind capability.ErrorKind
		text string
	}{
		"command:text": {capability.Unavailable, "the statement is a parameter"}, "command:none": {capability.Unavailable, "names no database"},
		"command:gone": {capability.NotFound, `names no database "lager"`}, "command:verb": {capability.Unavailable, "nothing can run db.drop"},
		"command:write": {capability.Denied, "may only be read"}, "command:nowhere": {capability.NotFound, ""},
	} {
		executortest.Refused(t, e, executortest.Call(id, object{}), want.kind, want.text)
	}
}

func TestExecuteSQLite(t *testing.T) {
	path := shop(t)
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: path, Write: true}})
	facts, err := e.Facts(t.Context(), executortest.Call("tool:db_shop_execute", object{"sql": "DELETE FROM orders"}), nil)
	if err != nil || !facts.Destructive || facts.Line != "DELETE FROM orders" || !slices.Contains(facts.Required, executor.PermWrite) {
		t.Errorf("Facts = %+v, %v", facts, err)
	}
	has(t, do(t, e, "tool:db_shop_execute", object{"sql": "UPDATE orders SET total = total + ? RETURNING total", "parameters": []any{1}}),
		"121", "2 rows changed")
	has(t, do(t, e, "tool:db_shop_execute", object{"sql": "CREATE TABLE extra (a)"}), "0 rows changed")
	// A statement that fails half way leaves nothing.
	fails(t, do(t, e, "tool:db_shop_execute", object{"sql": "INSERT INTO orders (customer) VALUES (1), (77)"}), "FOREIGN KEY")
	has(t, do(t, e, "tool:db_shop_query", object{"sql": "SELECT count(*) FROM orders"}), "| 2 |")
	for _, sql := range []string{
		"ATTACH '/tmp/x.db' AS x", "PRAGMA writable_schema=1", "PRAGMA journal_mode=OFF", "VACUUM INTO '/tmp/x.db'", "VACUUM", "BEGIN", "COMMIT", "ROLLBACK",
		"SAVEPOINT a", "CREATE VIRTUAL TABLE f USING fts5(a)", "CREATE TEMP TABLE x (a)", "SELECT load_extension('x')", "PRAGMA hard_heap_limit=1",
	} {
		r, err := e.Invoke(t.Context(), executortest.Call("tool:db_shop_execute", object{"sql": sql}))
		if err == nil && !r.Failed || err != nil && capability.KindOf(err) != capability.Denied {
			t.Errorf("execute %s = %+v, %v, want a refusal", sql, r, err)
		}
	}
	// query reads even here.
	if _, err := e.Invoke(t.Context(), executortest.Call("tool:db_shop_query", object{"sql": "DELETE FROM orders"})); capability.KindOf(err) != capability.Denied || !strings.Contains(fmt.Sprint(err), "use execute") {
		t.Errorf("query DELETE = %v", err)
	}
}

// hostile are statements that would write, or reach something else, by way of
// query or explain.
func hostile(dir string) []string {
	other := filepath.Join(dir, "other.db")
	return []string{
		"INSERT INTO customers VALUES (5, 'x', 'y')", "UPDATE customers SET name = 'x'", "DELETE FROM customers", "REPLACE INTO customers VALUES (1, 'x', 'y')",
		"WITH x AS (SELECT 1) INSERT INTO customers SELECT 7, 'x', 'y'", "WITH x AS (SELECT 1) DELETE FROM customers", "DELETE FROM customers RETURNING *",
		"DROP TABLE customers", "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE INDEX x ON customers (name)", "CREATE VIEW x AS SELECT 1",
		"CREATE TRIGGER x AFTER INSERT ON orders BEGIN DELETE FROM customers; END", "CREATE VIRTUAL TABLE x USING fts5(a)", "ALTER TABLE customers ADD COLUMN x",
		"ATTACH '" + other + "' AS o", "ATTACH ':memory:' AS o", "DETACH main", "VACUUM", "VACUUM INTO '" + other + "'", "REINDEX", "ANALYZE",
		"PRAGMA query_only=0", "PRAGMA query_only", "PRAGMA writable_schema=ON", "PRAGMA journal_mode=WAL", "PRAGMA user_version=9", "PRAGMA application_id=9",
		"PRAGMA hard_heap_limit=1", "PRAGMA soft_heap_limit=1", "PRAGMA temp_store_directory='" + dir + "'", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA incremental_vacuum",
		"PRAGMA cache_size=-1000000000", "PRAGMA mmap_size=1000000000", "PRAGMA optimize", "PRAGMA data_store_directory='/tmp'", "PRAGMA shrink_memory",
		"pragma/**/main.user_version=3", "EXPLAIN PRAGMA user_version=5", "EXPLAIN QUERY PLAN PRAGMA user_version=5", "/* x */ -- y\n;PRAGMA user_version=4",
		"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "SAVEPOINT x", "RELEASE x", "ROLLBACK",
		"SELECT load_extension('" + other + "')", "SELECT fts3_tokenizer('simple')", "SELECT writefile('" + other + "', 'x')", "SELECT readfile('/etc/passwd')", "SELECT edit('x')",
		"UPDATE sqlite_dbpage SET data = zeroblob(4096)", "INSERT INTO sqlite_schema VALUES ('table','x','x',0,'CREATE TABLE x(a)')", "DELETE FROM sqlite_master",
		"SELECT 1; DELETE FROM customers", "SELECT 1; PRAGMA query_only=0; DELETE FROM customers", ";;DELETE FROM customers", "SELECT 1;;DELETE FROM customers --",
		"SELECT * FROM pragma_user_version(9)", "SELECT * FROM pragma_wal_checkpoint", "SELECT * FROM pragma_journal_mode('wal')",
	}
}

// testReadOnly: no text makes query, explain or inspect change a byte, and
// no file appears beside.
func testReadOnly(t *testing.T) {
	testkit.CI(t, "asks hundreds of times")
	path := shop(t)
	dir := filepath.Dir(path)
	before, err := os.ReadFile(path)
	executortest.Must(t, err)
	for _, write := range []bool{false, true} {
		e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: path, Write: write}})
		for _, sql := range hostile(dir) {
			for _, verb := range []string{"query", "explain"} {
				r, err := e.Invoke(t.Context(), executortest.Call("tool:db_shop_"+verb, object{"sql": sql}))
				planned := verb == "explain" && (strings.HasPrefix(sql, "VACUUM") || strings.Contains(sql, "pragma_journal")) // nothing runs
				if kind := capability.KindOf(err); err == nil && !r.Failed && !planned || err != nil && kind != capability.Denied && kind != capability.Invalid {
					t.Errorf("%s %s (write %v) = %s, %v; want a refusal", verb, sql, write, text(r), err)
				}
				if err == nil || kind(err) != capability.Denied {
					continue
				}
				// The setting is named where it helps, and else the rule.
				rule := "db." + verb
				if !write && changesSomething(sql) {
					rule = "databases.shop.access"
				}
				if e, ok := errors.AsType[*capability.Error](err); !ok || e.Rule != rule {
					t.Errorf("%s %s (write %v): %v, want the rule %s", verb, sql, write, err, rule)
				}
			}
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(before) != string(after) {
		t.Errorf("the file changed: %d bytes before, %d after, %v", len(before), len(after), err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) != 1 {
		t.Errorf("there are more files than before: %v", list)
	}
}

// TestChangesSomething checks for which statements access: write is the advice.
func TestChangesSomething(t *testing.T) {
	for sql, want := range map[string]bool{
		"DELETE FROM orders": true, " with x AS (SELECT 1) insert INTO a SELECT 1": true, "/* x */ drop table a": true, ";;UPDATE a SET b = 1": true,
		"ATTACH 'x' AS o": false, "PRAGMA query_only=0": false, "VACUUM INTO 'drop table'": false, "SELECT load_extension('x')": false, "BEGIN": false, "": false,
	} {
		if got := changesSomething(sql); got != want {
			t.Errorf("changesSomething(%q) = %v, want %v", sql, got, want)
		}
	}
}

func kind(err error) capability.ErrorKind { return capability.KindOf(err) }

// endless runs without end, with a first row or before it.
var endless = []string{
	"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
	"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t WHERE x = 1 OR x < 0",
	"SELECT count(*) FROM sqlite_schema a, (WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t) b",
}

// testOutput: rows and bytes end where they should, and say so.
func testOutput(t *testing.T) {
	many := `WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 1000000) SELECT x, 'word ' || x AS w FROM t`
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: shop(t), Rows: 50, Bytes: 1 << 20},
		{Name: "small", Engine: SQLite, Path: shop(t), Rows: 1_000_000, Bytes: 8 << 10}})
	for _, format := range []string{"markdown", "csv", "json"} {
		r := do(t, e, "tool:db_shop_query", object{"sql": many, "format": format})
		if r.Meta["rows"] != "50" || r.Meta["truncated"] != "true" || !strings.Contains(text(r), "only the first 50 rows") || !strings.Contains(text(r), "databases.shop.rows") {
			t.Errorf("%s: %v %s", format, r.Meta, text(r))
		}
		if r := do(t, e, "tool:db_shop_query", object{"sql": many, "format": format, "rows": 3}); r.Meta["rows"] != "3" {
			t.Errorf("%s: rows 3 = %v", format, r.Meta)
		}
		r = do(t, e, "tool:db_small_query", object{"sql": many, "format": format})
		if len(text(r)) > 8<<10 || len(text(r)) < 4<<10 || r.Meta["truncated"] != "true" || !strings.Contains(text(r), "bytes") {
			t.Errorf("%s: %d bytes, %v", format, len(text(r)), r.Meta)
		}
		if format == "json" && !json.Valid(r.Parts[0].JSON) {
			t.Errorf("not JSON: %s", r.Parts[0].JSON)
		}
		// One large value is shown in part, with its size.
		r = do(t, e, "tool:db_small_query", object{"sql": "SELECT zeroblob(1000000) AS b, hex(zeroblob(100000)) AS t", "format": format})
		if r.Failed || len(text(r)) > 8<<10 || !strings.Contains(text(r), "1000000") || !strings.Contains(text(r), "left out") || r.Meta["truncated"] != "true" {
			t.Errorf("%s: a large value = %s %v", format, text(r), r.Meta)
		}
	}
	for _, sql := range []string{"SELECT zeroblob(1000000000)", "SELECT hex(randomblob(900000000))", "SELECT printf('%.*c', 900000000, 'x')", "SELECT replace(hex(zeroblob(8000000)), '0', 'xxxx')"} {
		fails(t, do(t, e, "tool:db_small_query", object{"sql": sql}), "too big")
	}
}

// testTimeouts: a statement without end stops with its call's time, or when the
// caller goes, also where SQLite cannot interrupt it; and it changes nothing.
func testTimeouts(t *testing.T) {
	testkit.CI(t, "runs statements that have no end")
	path := shop(t, "CREATE TABLE t (a)")
	e := rig(t, []Connection{{Name: "brief", Engine: SQLite, Path: path, Write: true, Timeout: 100 * time.Millisecond}, {Name: "long", Engine: SQLite, Path: path}})
	timeout := func(verb, sql string) {
		t.Helper()
		refuses(t, e, executortest.Call("tool:db_brief_"+verb, object{"sql": sql}), capability.Timeout, "databases.brief.timeout")
	}
	for _, sql := range append(slices.Clone(endless), endlessSteps...) {
		timeout("query", sql)
	}
	timeout("execute", "INSERT INTO t "+endlessSteps[0])
	if r := do(t, e, "tool:db_long_query", object{"sql": "SELECT count(*) FROM t", "format": "csv"}); !strings.Contains(text(r), "\n0\n") {
		t.Errorf("after a change that was stopped: %s, want no rows", text(r))
	}
	for _, sql := range []string{endless[0], endlessSteps[0]} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := e.Invoke(ctx, executortest.Call("tool:db_long_query", object{"sql": sql})); kind(err) != capability.Unavailable {
			t.Errorf("%.60s cancelled: %v", sql, err)
		}
	}
}

// TestLinks: a link that took the place of the file, or of a folder on the way to
// it, leads nowhere: a program that may write there could point it at Ken's store.
func TestLinks(t *testing.T) {
	secret := shop(t, `CREATE TABLE secrets (a)`)
	dir := t.TempDir()
	for _, tt := range []struct{ name, link, to, path string }{
		{"file", "app.db", secret, "app.db"},
		{"folder", "data", filepath.Dir(secret), "data/shop.db"},
		{"relative", "near.db", "shop.db", "near.db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.Symlink(tt.to, filepath.Join(dir, tt.link)); err != nil {
				t.Skip("cannot here: ", err)
			}
			e := rig(t, []Connection{{Name: "app", Engine: SQLite, Path: filepath.Join(dir, tt.path), Write: true}})
			for _, verb := range []string{"query", "explain", "execute"} {
				_, err := e.Invoke(t.Context(), executortest.Call("tool:db_app_"+verb, object{"sql": "SELECT * FROM secrets"}))
				if kind := capability.KindOf(err); err == nil || kind != capability.Unavailable {
					t.Errorf("%s through a link: %v (%v), want unavailable", verb, err, kind)
				}
			}
		})
	}
	one, first, err := plainFile(secret)
	executortest.Must(t, err)
	_, second, err := plainFile(shop(t))
	executortest.Must(t, err)
	f, err := openSQLite(one, false)
	executortest.Must(t, err)
	defer f.close()
	if !f.is(first) || first != second && f.is(second) {
		t.Error("the open file is not told apart from another")
	}
}

// TestMemory: the more values a statement holds at once, the shorter each must be,
// and what is too long for the answer is not copied whole.
func TestMemory(t *testing.T) {
	testkit.CI(t, "makes values of megabytes")
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: shop(t)}})
	for _, sql := range []string{
		"SELECT " + strings.Repeat("a, ", 199) + "a FROM (SELECT hex(randomblob(8000000)) a)",
		"SELECT " + strings.Repeat("hex(randomblob(8000000)), ", 100) + "1",
		"SELECT length(max(" + strings.Repeat("hex(randomblob(8000000)), ", 99) + "1))",
		"SELECT " + strings.Repeat("length(hex(randomblob(8000000))) + ", 400) + "1",
	} {
		fails(t, do(t, e, "tool:db_shop_query", object{"sql": sql}), "a value in this statement may have at most")
	}
	for format, want := range map[string]string{"json": `{"bytes":8000000,"base64":"AAAA`, "csv": "(8000000 bytes)", "markdown": "(8000000 bytes)"} {
		got := do(t, e, "tool:db_shop_query", object{"sql": "SELECT zeroblob(8000000) AS b, replace(hex(zeroblob(3000000)), '0', 'é') AS t", "format": format})
		if s := text(got); got.Failed || !strings.Contains(s, want) || !strings.Contains(s, "é[… ") || strings.Contains(s, "\uFFFD") || !strings.Contains(s, "2 values are not shown whole") {
			t.Errorf("%s: %d bytes, %.100s … %s", format, len(s), s, s[max(0, len(s)-200):])
		}
	}
	has(t, do(t, e, "tool:db_shop_query", object{"sql": "SELECT length(hex(zeroblob(8000000))) AS n"}), "16000000")
}

// endlessSteps are statements of which one step takes hours, so that no interrupt
// stops them, and statements that take all memory before their first step.
var endlessSteps = []string{
	"SELECT instr(hex(zeroblob(1000000)), hex(zeroblob(500000)) || 'b')",
	"SELECT length(replace(hex(zeroblob(1000000)), hex(zeroblob(500000)) || 'b', 'c'))",
	"SELECT length(trim(hex(zeroblob(300000)), replace(hex(zeroblob(300000)), '0', 'b') || '0'))",
	"SELECT length(unhex(replace(hex(zeroblob(500000)), '0', '-'), replace(hex(zeroblob(500000)), '0', '_') || '-'))",
}

// TestPrepareMemory: each WITH clause names the one before it twice, so SQLite
// makes 2^40 copies of the first while it compiles the statement. For views SQLite
// has a limit of its own.
func TestPrepareMemory(t *testing.T) {
	testkit.CI(t, "fills the memory of a process")
	if runtime.GOOS != "linux" {
		t.Skip("only Linux limits the memory of a process")
	}
	with, views := []string{"a0 AS (SELECT 1 x)"}, []string{"CREATE VIEW a0 AS SELECT 1 x"}
	for i := range 40 {
		twice := fmt.Sprintf("SELECT p.x FROM a%d p LEFT JOIN a%d q ON random() GROUP BY 1", i, i)
		with = append(with, fmt.Sprintf("a%d AS (%s)", i+1, twice))
		views = append(views, fmt.Sprintf("CREATE VIEW a%d AS %s", i+1, twice))
	}
	path := shop(t, append(views, "CREATE TABLE t (a)")...)
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: path, Timeout: testkit.Patience}})
	fails(t, do(t, e, "tool:db_shop_query", object{"sql": "WITH " + strings.Join(with, ", ") + " SELECT x FROM a40"}), "MiB of memory")
	fails(t, do(t, e, "tool:db_shop_query", object{"sql": "SELECT x FROM a40"}), "too many references")
	if r := do(t, e, "tool:db_shop_query", object{"sql": "SELECT count(*) FROM t"}); r.Failed {
		t.Errorf("afterwards: %+v", r)
	}
}

// TestChildBounds: what is kept of the output of a child is bounded however it
// is copied.
func TestChildBounds(t *testing.T) {
	var said firstWords
	if _, err := io.Copy(&said, strings.NewReader(strings.Repeat("x", 10_000))); err != nil || said.b.Len() != 4096 {
		t.Errorf("%d bytes are kept, %v", said.b.Len(), err)
	}
	if _, ok := any(&limitedBuffer{}).(io.ReaderFrom); ok {
		t.Error("a limitedBuffer reads past its limit")
	}
}

// TestChildNeedsEntry: a program that does not call [Child] is not started again,
// since its main would do its own work a second time.
func TestChildNeedsEntry(t *testing.T) {
	passed.Store(false)
	defer passed.Store(true)
	_, err := inChild(t.Context(), plan{connection: Connection{Engine: SQLite, Path: shop(t)}, verb: verbQuery, sql: "SELECT 1"})
	if err == nil || !strings.Contains(err.Error(), "ken.Helper") {
		t.Errorf("inChild without Child = %v, want an error that names ken.Helper", err)
	}
}
