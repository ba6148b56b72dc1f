//go:build unix

package mcpgateway

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/source/mcptools"
	"ken/internal/testkit/mcptest/sample"
	"ken/internal/testkit/storetest"
)

func desk(t testing.TB) *pin.Desk {
	t.Helper()
	d, err := pin.New(storetest.Open(t, filepath.Join(t.TempDir(), "ken.db")), pin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func rules(c *capability.Capability) string {
	var out []string
	for _, f := range c.Findings {
		if f.Severity == capability.Grave {
			out = append(out, f.Rule)
		}
	}
	return strings.Join(out, " ")
}

// TestPins: what a server adds or changes after its first listing cannot be
// called until a person accepts it.
func TestPins(t *testing.T) {
	d := desk(t)
	def := stdio(t, "s", "plain")
	first := listed(t, Config{Pins: d}, def)
	echo := byID(load(t, first))["mcp:s/echo"]
	if rules(echo) != "" || echo.Meta[mcptools.MetaExposed] != "echo" {
		t.Fatalf("echo at its first listing: %q, exposed as %q", rules(echo), echo.Meta[mcptools.MetaExposed])
	}
	// Another server that has the same tools gets other names.
	other := listed(t, Config{Pins: d}, stdio(t, "t", "plain"))
	if got := byID(load(t, other))["mcp:t/echo"].Meta[mcptools.MetaExposed]; got != "t__echo" {
		t.Errorf("the second echo is exposed as %q, want t__echo", got)
	}

	batches := watch(t, first.Sources()[0])
	invoke(t, first, callAs("ada", "", "s/grow", `{"text":"sprout"}`))
	sprout := byID(<-batches)["mcp:s/sprout"]
	if sprout == nil || rules(sprout) != "mcp-new" {
		t.Fatalf("a new tool: %+v", sprout)
	}
	refused(t, first, callAs("ada", "", "s/sprout", ""), capability.Conflict, "ken extension review mcp:s")

	def.Env = map[string]string{sample.Var: "changed"}
	second := listed(t, Config{Pins: d}, def)
	changed := byID(load(t, second))["mcp:s/echo"]
	if rules(changed) != "mcp-changed" || changed.Hash == echo.Hash {
		t.Errorf("a changed tool has the rules %q", rules(changed))
	}
	refused(t, second, callAs("ada", "", "s/echo", ""), capability.Conflict)
	if st := second.Status()[0]; st.Quarantined != 1 {
		t.Errorf("Status() says %d are in quarantine, want 1", st.Quarantined)
	}
}

// offeredNames returns the names of the prompts, resources and templates of a
// gateway's servers, and their instructions.
func offeredNames(g *Gateway) string {
	var out []string
	for _, o := range g.Offers() {
		for _, p := range o.Prompts {
			out = append(out, p.Name)
		}
		for _, r := range o.Resources {
			out = append(out, r.URI)
		}
		for _, t := range o.Templates {
			out = append(out, t.URITemplate)
		}
		if o.Instructions != "" {
			out = append(out, o.Instructions)
		}
	}
	return strings.Join(out, " ")
}

// TestPinsPromptsAndResources: a server's prompts, resources, templates and
// instructions are compared with what was accepted, like tools.
func TestPinsPromptsAndResources(t *testing.T) {
	kept := storetest.Open(t, filepath.Join(t.TempDir(), "ken.db"))
	open := func() *pin.Desk {
		d, err := pin.New(kept, pin.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	def := stdio(t, "s", "plain")
	first := listed(t, Config{Pins: open()}, def)
	const before = "greet note://a file:///{name}/x Ask nicely."
	if got := offeredNames(first); got != before {
		t.Fatalf("the first listing offers %q, want %q", got, before)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	def.Env = map[string]string{sample.Var: "other"}
	d := open() // as another process has it
	g := listed(t, Config{Pins: d}, def)
	if got, want := offeredNames(g), "greet file:///{name}/x"; got != want {
		t.Errorf("after a change it offers %q, want %q", got, want)
	}
	if st := g.Status()[0]; st.Barred != 4 {
		t.Errorf("Status() says that %d are barred, want 4", st.Barred)
	}
	for _, call := range []capability.Call{
		callAs("ada", "", "s/read_resource", `{"uri":"note://a"}`),
		callAs("ada", "", "s/get_prompt", `{"name":"second"}`),
	} {
		refused(t, g, call, capability.Conflict, "ken extension review mcp:s")
	}
	key := pin.OffersKey(pin.ServerKey("s", def.Origin.Path))
	waiting, err := d.Pending(t.Context(), key)
	if err != nil || len(waiting) != 4 {
		t.Fatalf("Pending() = %+v, %v, want 4", waiting, err)
	}
	shown := map[string]string{}
	for _, w := range waiting {
		shown[w.Tool] = w.Hash
	}
	if err := d.Accept(t.Context(), key, shown, capability.Principal{ID: "ada"}); err != nil {
		t.Fatal(err)
	}
	if err := g.Review(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got, want := offeredNames(g), "greet second note://a all:///{name} file:///{name}/x Ask for everything."; got != want {
		t.Errorf("after accepting it offers %q, want %q", got, want)
	}
	gives(t, g, callAs("ada", "", "s/read_resource", `{"uri":"note://a"}`), "text of note://a")
}

// TestScanPromptsAndResources: a grave finding bars a prompt or a resource, and
// the problem names the rule.
func TestScanPromptsAndResources(t *testing.T) {
	g := listed(t, Config{Pins: desk(t)}, stdio(t, "s", "poisoned"))
	if got, want := offeredNames(g), "greet note://a file:///{name}/x"; got != want {
		t.Errorf("it offers %q, want %q", got, want)
	}
	said := 0
	for _, p := range load(t, g).Problems {
		if strings.Contains(p.Message, "evil") && strings.Contains(p.Message, "override-instructions") {
			said++
		}
	}
	if said != 4 {
		t.Errorf("%d problems name what is kept back, want 4: %v", said, load(t, g).Problems)
	}
	refused(t, g, callAs("ada", "", "s/get_prompt", `{"name":"evil"}`), capability.Conflict)
}

// TestDecidedOnAnother: a call that was decided on for another text is refused.
func TestDecidedOnAnother(t *testing.T) {
	g := listed(t, Config{}, stdio(t, "s", "plain"))
	call := callAs("ada", "", "s/echo", `{"text":"x"}`)
	call.CapabilityHash = byID(load(t, g))["mcp:s/echo"].Hash
	gives(t, g, call, "x")
	call.CapabilityHash = "sha256:other"
	refused(t, g, call, capability.Conflict)
}

type brokenPins struct{}

func (brokenPins) Check(context.Context, string, []pin.Tool) (map[string]pin.Verdict, error) {
	return nil, errors.New("no store")
}

// TestPinsFailClosed: without pins nothing is accepted.
func TestPinsFailClosed(t *testing.T) {
	g := listed(t, Config{Pins: brokenPins{}}, stdio(t, "s", "plain"))
	b := load(t, g)
	for _, c := range b.Capabilities {
		if rules(c) != "mcp-unpinned" {
			t.Errorf("%s has the rules %q, want mcp-unpinned", c.ID, rules(c))
		}
	}
	if len(b.Capabilities) == 0 || len(b.Problems) == 0 {
		t.Errorf("%d capabilities, problems %v", len(b.Capabilities), b.Problems)
	}
	refused(t, g, callAs("ada", "", "s/echo", ""), capability.Conflict)
}
