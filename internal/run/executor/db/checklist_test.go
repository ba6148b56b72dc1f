package db

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/testkit/executortest"
)

// TestChecklist is S5.54 for databases.
func TestChecklist(t *testing.T) {
	path := shop(t)
	dir := filepath.Dir(path)
	e := rig(t, []Connection{
		{Name: "shop", Engine: SQLite, Path: path},
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
		WorkDirBounds: func(t *testing.T) { // a file is reached by the name of its connection alone, see also hostile
			if r, err := e.Invoke(t.Context(), query("SELECT * FROM '"+path+"'.customers")); err == nil && !r.Failed {
				t.Errorf("it was run: %+v", r)
			}
		},
		EnvFilter:   executortest.None("it reads no variables"),
		Timeout:     testTimeouts,
		OutputLimit: testOutput,
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
		MaliciousInputs: testReadOnly,
		PermissionReview: func(t *testing.T) {
			const read, write, network = executor.PermRead, executor.PermWrite, executor.PermNetwork
			want := map[string]string{
				"tool:db_own_inspect": read, "tool:db_own_query": read, "tool:db_own_explain": read, "tool:db_own_execute": read + " " + write,
				"tool:db_far_inspect": network, "tool:db_far_query": network, "tool:db_far_explain": network,
				"command:db/inspect": read + " " + network, "command:db/query": read + " " + network, "command:db/explain": read + " " + network,
				"command:db/execute": read + " " + write + " " + network,
			}
			tools := Tools([]Connection{{Name: "own", Engine: SQLite, Path: path, Write: true}, {Name: "far", Engine: Postgres, URL: "postgres://r@db.example.org/x"}})
			for _, tool := range tools {
				c := tool.Capability
				changes := strings.HasSuffix(string(c.ID), "execute")
				if strings.Join(c.Permissions, " ") != want[string(c.ID)] || c.HasSideEffects() != changes || (c.Effects.Destructive == capability.Yes) != changes {
					t.Errorf("%s declares %v and the effects %+v, want %s", c.ID, c.Permissions, c.Effects, want[string(c.ID)])
				}
			}
			if len(tools) != len(want) {
				t.Errorf("%d tools, want %d", len(tools), len(want))
			}
		},
	}.Run(t)
}

func textFile(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "text.db")
	executortest.Must(t, os.WriteFile(name, []byte(strings.Repeat("geheim ", 1000)), 0o600))
	return name
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
