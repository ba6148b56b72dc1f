//lint:file-ignore SA1019 servers list more to clients that can sample

package mcptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/mcpgateway"
	"ken/internal/testkit"
)

// TestFortyServers starts every server of the sample twice, plainly and behind
// a gateway under its defaults, and compares what they list.
func TestFortyServers(t *testing.T) {
	testkit.Nightly(t, "runs published servers")
	t.Parallel()
	npmDir(t) // skips them all at once
	servers := sample(t)
	if len(servers) != 40 {
		t.Errorf("servers.json has %d servers, want 40", len(servers))
	}
	for _, p := range servers {
		t.Run(strings.ReplaceAll(p.Package, "/", "."), func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			d := p.define(t, work)
			want := plainly(t, d, work)
			if len(want) != p.Tools {
				t.Errorf("%s lists %d tools, and servers.json says %d", p.Package, len(want), p.Tools)
			}
			got := behind(t, d, work)
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if g, ok := got[name]; !ok {
					t.Errorf("behind the gateway %s is missing", name)
				} else if diff := compare(want[name], g); diff != "" {
					t.Errorf("behind the gateway %s differs: %s", name, diff)
				}
				delete(got, name)
			}
			for name := range got {
				t.Errorf("behind the gateway there is also %s", name)
			}
		})
	}
}

// A listing is what a catalog has of a tool.
type listing struct {
	description string
	schema      json.RawMessage
}

// behind starts a server in a gateway and returns what the gateway offers of it.
func behind(tb testing.TB, d definition, work string) map[string]listing {
	tb.Helper()
	g, err := mcpgateway.New(mcpgateway.Config{
		Servers: []mcpgateway.Server{{Name: "it", Command: d.Command, Args: d.Args, Env: d.Env, Cwd: work, Trust: capability.TrustUser}},
		Work:    tb.TempDir(),
		Path:    filepath.Dir(d.Command) + ":/usr/bin:/bin",
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer g.Close()
	st := g.List(tb.Context(), "it")[0]
	if st.Err != "" {
		tb.Fatalf("list behind the gateway: %s\nfix: %s\nstderr: %s", st.Err, st.Fix, st.Stderr)
	}
	if st.Noise > 0 {
		tb.Logf("%d lines on its standard output were no messages, as %q", st.Noise, st.NoiseSample)
	}
	source := g.Sources()[0]
	batch, err := source.Load(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range batch.Problems {
		tb.Logf("problem: %+v", p)
	}
	out := map[string]listing{}
	for _, c := range batch.Capabilities {
		if c.Run == nil || c.Run.Runner != "mcp.call" {
			continue
		}
		detail, err := source.(capability.Detailer).Detail(tb.Context(), c)
		if err != nil {
			tb.Fatalf("schema of %s: %v", c.ID, err)
		}
		out[strings.TrimPrefix(string(c.ID), "mcp:it/")] = listing{c.Description, detail.Schema}
	}
	return out
}

// compare says how a tool differs from what the server said, or nothing.
func compare(want *mcp.Tool, got listing) string {
	if got.description != want.Description {
		return fmt.Sprintf("description %q, want %q", got.description, want.Description)
	}
	a, err := json.Marshal(want.InputSchema)
	if err != nil {
		return err.Error()
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(got.schema, &y) != nil || !reflect.DeepEqual(x, y) {
		return fmt.Sprintf("schema %s, want %s", got.schema, a)
	}
	return ""
}
