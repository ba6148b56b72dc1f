package db

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/testkit/executortest"
)

// TestChecklist is S5.54 for databases.
func TestChecklist(t *testing.T) {
	path := shop(t)
	dir := filepath.Dir(path)
	e := rig(t, []Connection{
		{Name: "shop", Engine: SQLite, Path: path, Timeout: 5 * time.Second},
		{Name: "gone", Engine: SQLite, Path: filepath.Join(dir, "deep", "gone.db")},
		{Name: "folder", Engine: SQLite, Path: dir},
		{Name: "text", Engine: SQLite, Path: textFile(t)},
		{Name: "own", Engine: SQLite, Path: path, Write: true},
	})
	query := func(sql string) capability.Call { return executortest.Call("tool:db_shop_query", object{"sql": sql}) }
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			for _, args := range []string{
				`{}`, `{"sql":""}`, `{"sql":" "}`, `{"sql":1}`, `{"sql":"SELECT 1","SQL":"SELECT 2"}`, `{"sql":"SELECT 1","sql":"SELECT 2"}`, `{"sql":"SELECT 1","format":"xml"}`,
				`{"sql":"SELECT 1","rows":-1}`, `{"sql":"SELECT 1","rows":1.5}`, `{"sql":"SELECT 1","parameters":{"a":1}}`, `{"sql":"SELECT 1","connection":"own"}`,
				`{"sql":"SELECT 1","path":"/etc/passwd"}`, `[]`, `nul`, `{"sql":"SELECT ?","parameters":[99999999999999999999]}`, `{"sql":"SELECT ?","parameters":[{"base64":"%"}]}`,
				`{"sql":"SELECT '\u0000'"}`, `{"sql":"SELECT 1","table":"customers"}`,
			} {
				executortest.Refused(t, e, executortest.Call("tool:db_shop_query", args), capability.Invalid, "read the arguments")
			}
			executortest.Refused(t, e, query("SELECT '"+strings.Repeat("x", mostSQL)+"'"), capability.Invalid, "more than")
			executortest.Refused(t, e, executortest.Call("command:db/query", object{"sql": "SELECT 1"}), capability.Invalid, "connection")
			executortest.Refused(t, e, executortest.Call("command:db/query", object{"connection": "../x", "sql": "SELECT 1"}), capability.NotFound, "names no database")
		},
		WorkDirBounds: func(t *testing.T) {
			// A file is reached by the name of its connection and in no other way.
			other := filepath.Join(dir, "made.db")
			for _, sql := range []string{"ATTACH '" + other + "' AS x", "VACUUM INTO '" + other + "'", "SELECT * FROM '" + path + "'.customers"} {
				if r, err := e.Invoke(t.Context(), query(sql)); err == nil && !r.Failed {
					t.Errorf("%s was run: %+v", sql, r)
				}
			}
			if _, err := os.Stat(other); err == nil {
				t.Error("a file was made")
			}
		},
		EnvFilter: func(t *testing.T) {
			t.Setenv("SQLITE_TMPDIR", dir)
			t.Setenv("KEN_SECRET", "leaked")
			if r := do(t, e, "tool:db_shop_query", object{"sql": "SELECT ?", "parameters": []any{"$KEN_SECRET ${env:KEN_SECRET}"}}); strings.Contains(text(r), "leaked") {
				t.Errorf("a variable was expanded: %s", text(r))
			}
		},
		Timeout: func(t *testing.T) {
			short := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: path, Timeout: 30 * time.Millisecond}})
			begun := time.Now()
			if _, err := short.Invoke(t.Context(), query(endless[0])); kind(err) != capability.Timeout || time.Since(begun) > 20*time.Second {
				t.Errorf("an endless query: %v after %v", err, time.Since(begun))
			}
		},
		OutputLimit: func(t *testing.T) {
			small := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: path, Bytes: 4 << 10, Rows: 100}})
			r := do(t, small, "tool:db_shop_query", object{"sql": "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x, hex(zeroblob(40)) FROM t"})
			if len(text(r)) > 4<<10 || r.Meta["truncated"] != "true" {
				t.Errorf("%d bytes, %v", len(text(r)), r.Meta)
			}
		},
		Log: func(t *testing.T) {
			facts, err := e.Facts(t.Context(), query("SELECT 1"), nil)
			if err != nil || facts.Line != "SELECT 1" {
				t.Errorf("Facts = %+v, %v: want the statement for the record", facts, err)
			}
			r := do(t, e, "tool:db_shop_query", object{"sql": "SELECT 1"})
			for _, key := range []string{"tool", "database", "rows", "truncated", "duration_ms", "isolation"} {
				if r.Meta[key] == "" {
					t.Errorf("Meta has no %s: %v", key, r.Meta)
				}
			}
		},
		SecureErrors: func(t *testing.T) {
			for _, name := range []string{"gone", "folder", "text"} {
				r, err := e.Invoke(t.Context(), executortest.Call("tool:db_"+name+"_query", object{"sql": "SELECT * FROM customers"}))
				if err == nil && !r.Failed {
					t.Errorf("%s was read: %+v", name, r)
				}
				if said := text(r) + errText(err); strings.Contains(said, dir) || strings.Contains(said, "geheim") {
					t.Errorf("%s: %s shows a folder or the content", name, said)
				}
			}
		},
		MaliciousInputs: func(t *testing.T) {
			before, _ := os.ReadFile(path)
			for _, sql := range hostile(dir) {
				if r, err := e.Invoke(t.Context(), query(sql)); err == nil && !r.Failed {
					t.Errorf("%s was run: %+v", sql, r)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file changed")
			}
		},
		PermissionReview: func(t *testing.T) {
			for _, tool := range Tools([]Connection{{Name: "own", Engine: SQLite, Path: path, Write: true}, {Name: "far", Engine: Postgres, URL: "postgres://r@db.example.org/x"}}) {
				c := tool.Capability
				verb := strings.TrimPrefix(c.Run.Runner, "db.")
				want := []string{executor.PermRead}
				switch {
				case c.Kind == capability.KindCommand && verb == "execute":
					want = []string{executor.PermRead, executor.PermWrite, executor.PermNetwork}
				case c.Kind == capability.KindCommand:
					want = []string{executor.PermRead, executor.PermNetwork}
				case c.Run.Argv[0] == "far":
					want = []string{executor.PermNetwork}
				case verb == "execute":
					want = []string{executor.PermRead, executor.PermWrite}
				}
				if strings.Join(c.Permissions, " ") != strings.Join(want, " ") {
					t.Errorf("%s declares %v, want %v", c.ID, c.Permissions, want)
				}
				if write := verb == "execute"; c.HasSideEffects() != write || (c.Effects.Destructive == capability.Yes) != write {
					t.Errorf("%s has the effects %+v", c.ID, c.Effects)
				}
				if strings.HasPrefix(string(c.ID), "tool:db_far_execute") {
					t.Error("a database that may only be read has the tool execute")
				}
			}
		},
	}.Run(t)
}

func textFile(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(name, []byte(strings.Repeat("geheim ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
