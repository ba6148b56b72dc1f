package mcpservers

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/secret"
)

var operator = capability.Principal{ID: "ann", Tenant: "acme"}

// A rig is Servers with an mcp.json and settings that a test changes.
type rig struct {
	*Servers
	settings *config.Config
	env      map[string]string
	records  []audit.Record
	broken   error // of the audit log
}

func newRig(t *testing.T, file string, servers ...config.Server) *rig {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{settings: &config.Config{}, env: map[string]string{}}
	r.settings.MCP.Servers = servers
	current := func() *config.Config { return r.settings }
	getenv := func(name string) string { return r.env[name] }
	var err error
	r.Servers, err = New(Config{
		Places: dirs.Places{Home: home, Workspace: t.TempDir()}, Operator: operator, Settings: current, Latest: current,
		Gateway:     mcpgateway.Config{Work: t.TempDir()},
		Definitions: definitions.New(definitions.Config{Desk: func() (*pin.Desk, error) { return nil, errors.New("there is no desk") }}),
		Secrets:     secret.New(secret.Config{Dir: filepath.Join(home, "secrets")}),
		Redact:      func() {}, Getenv: getenv, Log: slog.New(slog.DiscardHandler),
		Record: func(_ context.Context, rec audit.Record) error {
			r.records = append(r.records, rec)
			return r.broken
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

const twoServers = `{"mcpServers": {"files": {"command": "no-such-program"}, "web": {"url": "http://127.0.0.1:1/mcp", "disabled": true}}}`

// TestDefinitions: ken.yaml counts before mcp.json, and a name is used once.
func TestDefinitions(t *testing.T) {
	r := newRig(t, twoServers, config.Server{Name: "files", Command: "other"}, config.Server{Name: "mail", Command: "m"})
	var names []string
	for _, def := range r.Definitions() {
		names = append(names, def.Name+" "+def.Command)
	}
	if want := []string{"files other", "mail m", "web "}; !slices.Equal(names, want) {
		t.Errorf("Definitions = %q, want %q", names, want)
	}
	if p := r.Problems(); len(p) != 1 || p[0].Code != "mcp-duplicate" || !strings.Contains(p[0].Message, "files") {
		t.Errorf("Problems = %+v", p)
	}
	if r.PlainNames() || r.PinKey("mail") == "" || r.PinKey("none") != "" {
		t.Errorf("PlainNames %v, keys %q %q", r.PlainNames(), r.PinKey("mail"), r.PinKey("none"))
	}
}

// TestWhyAbsent: the operator is told what is known of the server that an id
// names; others are told nothing of servers.
func TestWhyAbsent(t *testing.T) {
	r := newRig(t, `{"mcpServers": {"web": {"url": "http://127.0.0.1:1/mcp", "disabled": true}}}`)
	missing := &capability.Error{Kind: capability.NotFound, Op: "find", Target: "x"}
	for id, want := range map[string]string{
		"mcp:none/x": "there is no MCP server none", "mcp:web/x": "the MCP server web is disabled", "tool:x": missing.Error(),
	} {
		if err := r.WhyAbsent(operator, id, missing); !strings.Contains(err.Error(), want) {
			t.Errorf("WhyAbsent(%s) = %v, want %q", id, err, want)
		}
	}
	if err := r.Absent(capability.Principal{ID: "eve", Tenant: "acme"}, "mcp:web/x"); err != nil {
		t.Errorf("another principal is told %v", err)
	}
}

// TestSwitch: a server of mcp.json is switched there, after a record; one that is
// defined elsewhere is left alone, and the error says what to write.
func TestSwitch(t *testing.T) {
	r := newRig(t, twoServers, config.Server{Name: "mail", Command: "m", Origin: capability.Origin{Path: "/etc/ken.yaml", Line: 3}})
	if changed, err := r.Switch(t.Context(), operator, "files", true, ""); changed || err != nil || len(r.records) != 0 {
		t.Errorf("Switch on what is on = %v, %v with %d records", changed, err, len(r.records))
	}
	changed, err := r.Switch(t.Context(), operator, "files", false, "not needed")
	if !changed || err != nil || len(r.records) != 1 || r.records[0].Action != "disable" || r.records[0].Metadata.Notes["why"] != "not needed" {
		t.Errorf("Switch = %v, %v with %+v", changed, err, r.records)
	}
	if def, err := r.Find("look at", "files"); err != nil || !def.Disabled {
		t.Errorf("after it the server is disabled: %v, %v", def.Disabled, err)
	}
	r.broken = errors.New("the disk is full")
	if changed, err := r.Switch(t.Context(), operator, "files", true, ""); changed || !errors.Is(err, r.broken) {
		t.Errorf("Switch without a record = %v, %v", changed, err)
	}
	if def, _ := r.Find("look at", "files"); !def.Disabled {
		t.Error("without a record the server was switched")
	}
	r.broken = nil
	if _, err := r.Switch(t.Context(), operator, "mail", false, ""); err == nil || !strings.Contains(err.Error(), "/etc/ken.yaml") || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("Switch of a server of ken.yaml = %v", err)
	}
	if _, err := r.Switch(t.Context(), operator, "none", false, ""); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Switch of no server = %v", err)
	}
}

// TestValue: a definition may name variables, but those of Ken's own only if it
// is the user's.
func TestValue(t *testing.T) {
	r := newRig(t, "{}")
	r.env["TOKEN"], r.env["KEN_HOME"] = "abc", "/home/ann/.ken"
	for name, want := range map[string]string{"TOKEN": "abc", "env:TOKEN": "abc", "KEN_HOME": "/home/ann/.ken", "env:KEN_HOME": "", "env:ken_home": "", "secret:TOKEN": "", "NONE": ""} {
		if got, ok := r.Value(name); ok != (want != "") || ok && got != want {
			t.Errorf("Value(%s) = %q, %v; want %q", name, got, ok, want)
		}
	}
}

// TestLoginError: ken login does not advise to run ken login.
func TestLoginError(t *testing.T) {
	def := mcpgateway.Server{Name: "web", Origin: capability.Origin{Path: "/x.json", Line: 2}}
	unreached := &url.Error{Op: "Get", URL: "http://127.0.0.1:1/mcp", Err: errors.New("connection refused")}
	other := errors.New("other")
	tests := []struct {
		err  error
		want string
	}{
		{&capability.Error{Op: "log in to", Target: "web", Err: oauth.ErrLogin, Fix: "ken login web"}, "needs a login at all"},
		{&capability.Error{Op: "log in to", Target: "web", Err: errors.Join(oauth.ErrLogin, unreached), Fix: "ken login web"}, "http://127.0.0.1:1 cannot be reached: connection refused"},
		{&capability.Error{Op: "log in to", Target: "web", Err: other, Fix: "ask the administrator"}, "ask the administrator"},
		{other, "other"},
	}
	for _, tt := range tests {
		if err := loginError(def, tt.err); !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "ken login") {
			t.Errorf("loginError(%v) = %v, want %q", tt.err, err, tt.want)
		}
	}
}
