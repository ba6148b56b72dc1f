package results

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/result"
	"ken/internal/testkit/executortest"
)

var ada = capability.Principal{ID: "ada"}

// kept opens a store with one result of ada's session s.
func kept(t *testing.T, text string) (*Executor, string) {
	t.Helper()
	s, err := result.Open(result.Config{Dir: filepath.Join(t.TempDir(), "results")})
	executortest.Must(t, err)
	t.Cleanup(func() { s.Close() })
	e, err := s.Keep(result.Scope{Principal: "ada", Session: "s"}, result.About{Target: "tool:x"}, []byte(text), false, nil)
	executortest.Must(t, err)
	return New(s), e.Handle
}

func call(arguments string) capability.Call {
	return capability.Call{Target: "tool:read_result", Arguments: json.RawMessage(arguments), Principal: ada, Session: "s"}
}

// TestChecklist is S5.54 for read_result.
func TestChecklist(t *testing.T) {
	lines := make([]string, 5000)
	for i := range lines {
		lines[i] = "line " + strconv.Itoa(i+1)
	}
	e, handle := kept(t, strings.Join(lines, "\n"))
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			for _, args := range []string{`{"op":"eat"}`, `{"count":-1}`, `{"handle":7}`, `{"op":"search"}`, `{"op":"search","pattern":"(","regexp":true}`, `{"path":"/etc/passwd"}`, `[]`} {
				executortest.Fails(t, e, call(args), capability.Invalid)
			}
		},
		WorkDirBounds: func(t *testing.T) {
			// It has no work directory: a handle is a name in the store, and
			// nothing else is one.
			for _, h := range []string{"../" + handle, "/etc/passwd", handle + "/..", "..", strings.Repeat("a", 5000)} {
				executortest.Fails(t, e, call(`{"handle":`+strconv.Quote(h)+`}`), capability.NotFound)
			}
		},
		EnvFilter: executortest.None("it reads no variables"),
		Timeout: func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := e.Invoke(ctx, call(`{"op":"search","pattern":"x"}`)); err == nil {
				t.Error("a call that is over was answered")
			}
		},
		OutputLimit: func(t *testing.T) {
			r, err := e.Invoke(t.Context(), call(`{"op":"lines","from":1,"limit":100}`))
			var about result.Excerpt
			if err != nil || len(r.Parts) != 2 || len(r.Parts[0].Text) > 100 || json.Unmarshal(r.Parts[1].JSON, &about) != nil || about.Left == "" {
				t.Errorf("Invoke = %+v, %v; want at most 100 characters, and what is left", r, err)
			}
		},
		Log: func(t *testing.T) {
			if f, err := e.Facts(t.Context(), call(`{}`), nil); err != nil || len(f.Required) != 0 {
				t.Errorf("Facts = %+v, %v; want nothing to declare", f, err)
			}
		},
		SecureErrors: func(t *testing.T) {
			_, err := e.Invoke(t.Context(), call(`{"handle":"hunter2"}`))
			if err == nil || strings.Contains(err.Error(), t.TempDir()[:5]+"/") {
				t.Errorf("Invoke = %v, want an error without a path", err)
			}
		},
		MaliciousInputs: func(t *testing.T) {
			for _, who := range []capability.Call{
				{Target: "tool:read_result", Principal: capability.Principal{ID: "eve"}, Session: "s"},
				{Target: "tool:read_result", Principal: capability.Principal{ID: "ada", Tenant: "other"}, Session: "s"},
				{Target: "tool:read_result", Principal: ada, Session: "t"},
				{Target: "tool:read_result", Session: "s"},
			} {
				who.Arguments = json.RawMessage(`{"handle":"` + handle + `"}`)
				if r, err := e.Invoke(t.Context(), who); err == nil {
					t.Errorf("Invoke by %+v in %q = %+v, want a refusal", who.Principal, who.Session, r)
				}
			}
			if r, err := e.Invoke(t.Context(), call(`{"handle":"`+handle+`","op":"tail","count":1}`)); err != nil || r.Parts[0].Text != "line 5000" {
				t.Errorf("control: Invoke = %+v, %v; want the last line", r, err)
			}
		},
		PermissionReview: func(t *testing.T) {
			for _, tool := range Tools() {
				c := tool.Capability
				if c.Effects.ReadOnly != capability.Yes || len(c.Permissions) != 0 || !json.Valid(tool.Detail.Schema) {
					t.Errorf("%s declares %+v", c.ID, c)
				}
			}
		},
	}.Run(t)
}
