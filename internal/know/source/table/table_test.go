package table

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/testkit"
)

var (
	_ capability.Watcher  = (*Table)(nil)
	_ capability.Detailer = (*Table)(nil)
)

// A bench is a database that a test may write to.
type bench struct {
	dsn string
	db  *sql.DB
}

func (b bench) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := b.db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// table makes the source under test, and checks that it leaves nothing behind.
func (b bench) table(t *testing.T, cfg Config) *Table {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	cfg.DSN = b.dsn
	tab, err := New(cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := tab.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		goleak.VerifyNone(t, leaks)
	})
	return tab
}

// newSQLiteBench makes a database in a file whose name needs care.
func newSQLiteBench(t *testing.T) bench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "caps #1 50%?.db")
	return bench{dsn: file, db: openSQLite(t, file)}
}

func openSQLite(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23", " ", "%20").Replace(file)+"?_pragma=busy_timeout(10000)")
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func load(t *testing.T, tab *Table) capability.Batch {
	t.Helper()
	b, err := tab.Load(context.Background())
	must(t, err)
	return b
}

func ids(b capability.Batch) string {
	var out []string
	for _, c := range b.Capabilities {
		out = append(out, string(c.ID))
	}
	return strings.Join(out, " ")
}

const createTable = `CREATE TABLE capabilities (
	id TEXT, kind TEXT, name TEXT, display_name TEXT, description TEXT, category TEXT, tags TEXT,
	input_schema TEXT, body TEXT, required_secrets TEXT, depends_on TEXT, version TEXT, owner TEXT, stars INTEGER)`

// TestSQLiteLoad runs what every database must do on SQLite.
func TestSQLiteLoad(t *testing.T) { runKit(t, newSQLiteBench) }

// runKit is the conformance kit of databases.
func runKit(t *testing.T, newBench func(*testing.T) bench) {
	for name, test := range map[string]func(*testing.T, bench){
		"Fields": testFields, "BadRows": testBadRows, "Detail": testDetail, "Watch": testWatch,
		"Limit": testLimit, "OddNames": testOddNames, "Shape": testShape, "View": testView, "ReadOnly": testReadOnly, "Cancel": testCancel,
	} {
		t.Run(name, func(t *testing.T) { test(t, newBench(t)) })
	}
}

func testFields(t *testing.T, b bench) {
	b.exec(t, createTable)
	b.exec(t, `INSERT INTO capabilities VALUES
		('tool:weather', 'tool', 'weather', 'Weather', 'Tells the weather.', 'world', '["rain","sun"]',
		 '{"type": "object", "properties": {"city": {"type": "string", "description": "Where", "default": 1.0}}, "required": ["city"]}',
		 'Long text.', 'WEATHER_KEY, OTHER_KEY', '["tool:http"]', '2', 'ada', 7),
		(NULL, NULL, 'plain', NULL, 'Only what is needed.', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`)
	tab := b.table(t, Config{Name: "db", Trust: capability.TrustUser})
	got := load(t, tab)
	if len(got.Problems) != 0 || ids(got) != "tool:plain tool:weather" {
		t.Fatalf("ids %q, problems %v", ids(got), got.Problems)
	}
	c := got.Capabilities[1]
	want := &capability.Capability{
		ID: "tool:weather", Kind: capability.KindTool, Name: "weather", DisplayName: "Weather",
		Description: "Tells the weather.", Category: "world", Tags: []string{"rain", "sun"},
		Parameters:      []capability.Parameter{{Name: "city", Type: "string", Description: "Where", Required: true}},
		RequiredSecrets: []string{"WEATHER_KEY", "OTHER_KEY"}, RequiredTools: []string{"tool:http"}, Version: "2",
		Meta:   map[string]string{"owner": "ada", "stars": "7"},
		Origin: capability.Origin{Source: "db", Format: "table", Location: capability.Database, Path: tab.place.shown, Pointer: "tool:weather"},
		Trust:  capability.TrustUser, Hash: c.Hash,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("weather (-want +got):\n%s", diff)
	}
	d, err := tab.Detail(context.Background(), c)
	wantSchema := `{"type":"object","properties":{"city":{"type":"string","description":"Where","default":1.0}},"required":["city"]}`
	if err != nil || string(d.Schema) != wantSchema || d.Body != "Long text." {
		t.Errorf("Detail = %s %q, %v, want %s", d.Schema, d.Body, err, wantSchema)
	}
	if c := got.Capabilities[0]; c.Category != "general" || c.Origin.Pointer != "plain" {
		t.Errorf("plain = %+v", c)
	}
	if d, err := tab.Detail(context.Background(), got.Capabilities[0]); err != nil || d.Body != "" {
		t.Errorf("Detail of a row without an id = %+v, %v", d, err)
	}
}

func testBadRows(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (id TEXT, name TEXT, description TEXT, input_schema TEXT, body TEXT, tags TEXT)`)
	insert := `INSERT INTO capabilities VALUES ($1, $2, $3, $4, $5, $6)`
	b.exec(t, insert, "a", "good", "Is good.", nil, nil, "")
	b.exec(t, insert, "b", nil, "Has no name.", nil, nil, nil)
	b.exec(t, insert, "c", "c", "  ", nil, nil, nil)
	b.exec(t, insert, "d", "d", "Has a broken schema.", `{"type":`, nil, nil)
	b.exec(t, insert, "e", "e", "Has a schema that is a list.", `[1]`, nil, nil)
	b.exec(t, insert, "f", "f", "Is large.", nil, strings.Repeat("x", maxRowBytes), nil)
	b.exec(t, insert, "g", "g", "Has tags of a wrong shape.", nil, nil, `[{"x":1}]`)
	b.exec(t, insert, "h", "good too", "Is good.", `{"type":"object"}`, strings.Repeat("y", maxRowBytes/2), `not [json], really`)
	got := load(t, b.table(t, Config{}))
	if ids(got) != "a h" {
		t.Errorf("ids = %q, want a h", ids(got))
	}
	var problems []string
	for _, p := range got.Problems {
		problems = append(problems, p.Origin.Pointer+" "+p.Code)
		if p.Severity != capability.Grave || p.Fix == "" || p.Message == "" || p.Origin.Location != capability.Database {
			t.Errorf("problem %+v lacks something", p)
		}
	}
	want := []string{"b no-name", "c no-description", "d bad-schema", "e bad-schema", "f too-large", "g bad-row"}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func testDetail(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (id TEXT, name TEXT, description TEXT, body TEXT)`)
	b.exec(t, `INSERT INTO capabilities VALUES ('a', 'a', 'A.', 'one'), ('a', 'a', 'A.', 'two'), ('b', 'b', 'B.', 'b')`)
	tab := b.table(t, Config{})
	ctx := context.Background()
	got := load(t, tab)
	bodies := map[string]bool{}
	for _, c := range got.Capabilities {
		d, err := tab.Detail(ctx, c)
		if err != nil {
			t.Errorf("Detail(%s) = %v", c.ID, err)
		}
		bodies[d.Body] = true
	}
	if len(bodies) != 3 {
		t.Errorf("bodies = %v, want each row its own, the two of one id among them", bodies)
	}
	last := got.Capabilities[2]
	b.exec(t, `UPDATE capabilities SET body = 'changed' WHERE id = 'b'`)
	if _, err := tab.Detail(ctx, last); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Detail after a change = %v, want a conflict", err)
	}
	b.exec(t, `DELETE FROM capabilities WHERE id = 'b'`)
	if _, err := tab.Detail(ctx, last); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Detail after the end = %v, want not found", err)
	}
}

func testWatch(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (id TEXT, name TEXT, description TEXT)`)
	b.exec(t, `INSERT INTO capabilities VALUES ('a', 'a', 'A.'), ('b', 'b', 'B.')`)
	tab := b.table(t, Config{Poll: time.Millisecond})
	first := load(t, tab)
	if _, changed, err := tab.look(context.Background()); changed || err != nil {
		t.Fatalf("look at an unchanged table = %v, %v, want no change", changed, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type event struct {
		batch capability.Batch
		err   error
	}
	events := make(chan event)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for batch, err := range tab.Watch(ctx) {
			select {
			case events <- event{batch, err}:
			case <-ctx.Done():
			}
		}
	}()
	next := func() event { return <-events }
	for _, step := range []struct{ query, want string }{
		{`INSERT INTO capabilities VALUES ('c', 'c', 'C.')`, "a b c"},
		{`DELETE FROM capabilities WHERE id = 'b'`, "a c"},
		{`UPDATE capabilities SET id = 'd' WHERE id = 'c'`, "a d"},
	} {
		b.exec(t, step.query)
		e := next()
		if e.err != nil || ids(e.batch) != step.want {
			t.Fatalf("after %s: %q, %v, want %q", step.query, ids(e.batch), e.err, step.want)
		}
		if e.batch.Capabilities[0] != first.Capabilities[0] {
			t.Errorf("after %s: the row that did not change is another pointer", step.query)
		}
	}
	b.exec(t, `ALTER TABLE capabilities RENAME TO elsewhere`)
	if e := next(); e.err == nil {
		t.Errorf("without its table: %q, want an error", ids(e.batch))
	}
	b.exec(t, `ALTER TABLE elsewhere RENAME TO capabilities`)
	b.exec(t, `INSERT INTO capabilities VALUES ('e', 'e', 'E.')`)
	for e := next(); ids(e.batch) != "a d e"; e = next() {
		if e.err == nil && ids(e.batch) != "a d" {
			t.Fatalf("once it is back: %q", ids(e.batch))
		}
	}
	cancel()
	<-done
}

func testLimit(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	for i := range 5 {
		b.exec(t, `INSERT INTO capabilities VALUES ($1, 'D.')`, fmt.Sprintf("n%d", i))
	}
	tab := b.table(t, Config{})
	tab.limit = 5
	if got := load(t, tab); len(got.Capabilities) != 5 || len(got.Problems) != 0 {
		t.Errorf("at the limit: %d rows, problems %v", len(got.Capabilities), got.Problems)
	}
	tab.limit = 4
	got := load(t, tab)
	if len(got.Capabilities) != 4 || len(got.Problems) != 1 || got.Problems[0].Code != "too-many-rows" {
		t.Errorf("past the limit: %d rows, problems %v", len(got.Capabilities), got.Problems)
	}
	b.exec(t, `DELETE FROM capabilities`)
	for i := range maxTold + 3 {
		b.exec(t, `INSERT INTO capabilities VALUES ($1, '')`, fmt.Sprintf("n%d", i))
	}
	tab.limit = maxRows
	got = load(t, tab)
	if n := len(got.Problems); n != maxTold+1 || !strings.Contains(got.Problems[n-1].Message, "3 more rows") {
		t.Errorf("%d problems, want %d and a word about 3 more", n, maxTold+1)
	}
}

func testOddNames(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE "Tools_2" ("Name" TEXT, "Description" TEXT, "we""ird; --" TEXT, "Required-Secrets" TEXT)`)
	b.exec(t, `INSERT INTO "Tools_2" VALUES ('a''; DROP TABLE x; --', 'A.', 'kept', 'K')`)
	tab := b.table(t, Config{Table: "Tools_2"})
	got := load(t, tab)
	if len(got.Capabilities) != 1 || len(got.Problems) != 0 {
		t.Fatalf("%d rows, problems %v", len(got.Capabilities), got.Problems)
	}
	c := got.Capabilities[0]
	if c.Meta[`we"ird; --`] != "kept" || c.RequiredSecrets[0] != "K" || c.Name != "a'; DROP TABLE x; --" {
		t.Errorf("row = %+v", c)
	}
	if _, err := tab.Detail(context.Background(), c); err != nil {
		t.Errorf("Detail = %v", err)
	}
}

func testShape(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (id TEXT, title TEXT)`)
	_, err := b.table(t, Config{}).Load(context.Background())
	if capability.KindOf(err) != capability.Invalid || !strings.Contains(err.Error(), "no column name; it has id, title") {
		t.Errorf("Load = %v, want the missing column and those that are there", err)
	}
	_, err = b.table(t, Config{Table: "missing"}).Load(context.Background())
	if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "missing") {
		t.Errorf("Load of a missing table = %v", err)
	}
}

func testView(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE raw (a TEXT, b TEXT)`)
	b.exec(t, `INSERT INTO raw VALUES ('x', 'X.')`)
	b.exec(t, `CREATE VIEW capabilities AS SELECT a AS name, b AS description FROM raw`)
	tab := b.table(t, Config{})
	if got := load(t, tab); ids(got) != "tool:x" {
		t.Errorf("ids of a view = %q, problems %v", ids(got), got.Problems)
	}
	b.exec(t, `UPDATE raw SET a = 'y'`)
	got, changed, err := tab.look(context.Background())
	if err != nil || !changed || ids(got) != "tool:y" {
		t.Errorf("look after a change = %q, %v, %v", ids(got), changed, err)
	}
}

func testReadOnly(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	tab := b.table(t, Config{})
	load(t, tab)
	var db *sql.DB
	switch d := tab.db.(type) {
	case *sqlite:
		db = d.db
	case *postgres:
		db = d.db
	}
	if _, err := db.Exec(`INSERT INTO capabilities VALUES ('a', 'A.')`); err == nil {
		t.Error("the source's own connection can write")
	}
}

func testCancel(t *testing.T, b bench) {
	b.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	tab := b.table(t, Config{})
	load(t, tab)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tab.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load after cancel = %v, want context.Canceled", err)
	}
	for batch, err := range tab.Watch(ctx) {
		t.Errorf("Watch after cancel = %v, %v, want nothing", batch, err)
	}
}

// TestPostgresLoad runs the kit on the server that KEN_TEST_POSTGRES names, each
// test in a schema of its own.
func TestPostgresLoad(t *testing.T) {
	server := testkit.PostgreSQL(t)
	n := 0
	runKit(t, func(t *testing.T) bench {
		n++
		return newPostgresBench(t, server, fmt.Sprintf("ken_test_%d_%d", os.Getpid(), n))
	})
}

func newPostgresBench(t *testing.T, server, schema string) bench {
	t.Helper()
	separator := "?"
	if strings.Contains(server, "?") {
		separator = "&"
	}
	b := bench{dsn: server + separator + "search_path=" + schema}
	db, err := sql.Open("pgx", b.dsn)
	must(t, err)
	b.db = db
	b.exec(t, "CREATE SCHEMA "+schema)
	t.Cleanup(func() {
		b.exec(t, "DROP SCHEMA "+schema+" CASCADE")
		db.Close()
	})
	return b
}

// TestPostgresTypes: arrays, jsonb, numbers and times of the server come in.
func TestPostgresTypes(t *testing.T) {
	b := newPostgresBench(t, testkit.PostgreSQL(t), fmt.Sprintf("ken_test_types_%d", os.Getpid()))
	b.exec(t, `CREATE TABLE capabilities (id BIGINT PRIMARY KEY, name VARCHAR(80), description TEXT, tags TEXT[], input_schema JSONB, available BOOLEAN, made TIMESTAMPTZ, extra JSONB, price NUMERIC)`)
	b.exec(t, `INSERT INTO capabilities VALUES (7, 'a', 'A.', ARRAY['x','y "z"'], '{"type":"object","properties":{"q":{"type":"string"}}}', false, '2026-11-02T15:04:05Z', '{"k":[1,2]}', 1.50)`)
	tab := b.table(t, Config{Table: "capabilities"})
	got := load(t, tab)
	if len(got.Capabilities) != 1 {
		t.Fatalf("problems %v", got.Problems)
	}
	c := got.Capabilities[0]
	if c.ID != "7" || !cmp.Equal(c.Tags, []string{"x", `y "z"`}) || c.Parameters[0].Name != "q" || !strings.Contains(c.Unavailable, "unavailable") {
		t.Errorf("row = %+v", c)
	}
	if c.Meta["extra"] != `{"k":[1,2]}` || !strings.HasPrefix(c.Meta["made"], "2026-11-02T") || c.Meta["price"] != "1.5" {
		t.Errorf("Meta = %v", c.Meta)
	}
	if _, err := tab.Detail(context.Background(), c); err != nil {
		t.Errorf("Detail = %v", err)
	}
}

// TestPostgresSlowTransaction: a change that commits late is noticed, though a
// later one was seen before it.
func TestPostgresSlowTransaction(t *testing.T) {
	b := newPostgresBench(t, testkit.PostgreSQL(t), fmt.Sprintf("ken_test_slow_%d", os.Getpid()))
	b.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	b.exec(t, `INSERT INTO capabilities VALUES ('a', 'A.'), ('b', 'B.')`)
	tab := b.table(t, Config{})
	load(t, tab)
	slow, err := b.db.Begin()
	must(t, err)
	if _, err := slow.Exec(`UPDATE capabilities SET description = 'A2.' WHERE name = 'a'`); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE capabilities SET description = 'B2.' WHERE name = 'b'`)
	if _, changed, err := tab.look(context.Background()); !changed || err != nil {
		t.Fatalf("look after the quick change = %v, %v", changed, err)
	}
	must(t, slow.Commit())
	got, changed, err := tab.look(context.Background())
	if err != nil || !changed || got.Capabilities[0].Description != "A2." {
		t.Errorf("look after the late change = %v, %v, %+v", changed, err, got.Capabilities)
	}
}

func TestPostgresSecrets(t *testing.T) {
	// Nobody listens on port 1; the error is the driver's own.
	for _, dsn := range []string{
		"postgres://ada:S3CRET@127.0.0.1:1/db?table=tools",
		"postgresql://ada@127.0.0.1:1/db?password=S3CRET",
		"postgres://ada:S3%2FCRET@127.0.0.1:1/db",
	} {
		tab, err := New(Config{DSN: dsn})
		must(t, err)
		_, err = tab.Load(context.Background())
		if err == nil {
			t.Fatalf("Load from port 1 succeeded")
		}
		all, _ := json.Marshal(tab.origin("k"))
		for what, s := range map[string]string{"name": tab.Name(), "error": err.Error(), "error in full": fmt.Sprintf("%+v", errors.Unwrap(err)), "origin": string(all)} {
			if strings.Contains(s, "S3") || strings.Contains(s, "CRET") {
				t.Errorf("%s shows the password: %s", what, s)
			}
		}
		if capability.KindOf(err) != capability.Unavailable {
			t.Errorf("Load = %v, want unavailable", err)
		}
		tab.Close()
	}
}

// must ends the test where there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
