package commands

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/talk/event"
	"ken/internal/testkit/doortest"
)

// A rig is a Set over a real door, whose catalog and rules a test can change.
type rig struct {
	*Set
	*doortest.World
	memory  *source.Memory
	lookups int // how often a schema was read
}

func owner() capability.Principal { return capability.Principal{ID: "local"} }

// open makes a Set with the tool greet, which is hidden from bob, the commands
// review and tidy, which are prompts, and the program's own tool list_things,
// formerly list-things, which is hidden from everybody.
func open(t *testing.T) *rig {
	t.Helper()
	r := &rig{memory: source.NewMemory("test", capability.TrustUser)}
	tool := func(m *source.Memory, name, schema string, aliases ...string) {
		m.Put(capability.Capability{
			ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Aliases: aliases, Description: "Does " + name,
			Run: &capability.Recipe{Runner: "function." + name},
		}, capability.Detail{Schema: json.RawMessage(schema)})
	}
	tool(r.memory, "greet", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	prompt := func(name, body string) {
		r.memory.Put(capability.Capability{ID: capability.ID("command:" + name), Kind: capability.KindCommand, Name: name, Description: "Says " + name}, capability.Detail{Body: body})
	}
	prompt("review", "Review the file $ARGUMENTS, and only $ARGUMENTS.")
	prompt("tidy", "Tidy up.")
	own := source.NewMemory("own", capability.TrustBuiltin)
	tool(own, "list_things", `{"type":"object","properties":{}}`, "list-things")

	r.World = doortest.Open(t, doortest.Config{Source: r.memory, Own: own, Rules: func(rules *policy.Settings) {
		rules.Rules = []policy.Rule{
			{ID: "no-greet", Effect: policy.Deny, Capabilities: []string{"tool:greet"}, Principals: []string{"bob"}, Where: "test:1"},
			{ID: "no-list", Effect: policy.Deny, Capabilities: []string{"tool:list_things"}, Where: "test:2"},
		}
	}})
	r.Set = New(Config{
		Catalog: r.Catalog, Own: r.Tools, Door: r.Door, Owner: owner(),
		NoRules: func(p capability.Principal) error {
			if r.Rules == nil {
				return errors.New("the file of " + p.ID + " is broken")
			}
			return nil
		},
		Lookup: func(ctx context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
			r.lookups++
			for _, c := range []*catalog.Catalog{r.Catalog, r.Tools} {
				if e, ok := c.Snapshot().Get(id); ok {
					detail, err := c.Inspect(ctx, e)
					return e.Capability, detail, err
				}
			}
			return nil, capability.Detail{}, errors.New("not there")
		},
	})
	return r
}

// TestFor: the owner has every command, so that a call says why it is denied.
// Everybody else, and an agent whoever it works for, has those that they see.
func TestFor(t *testing.T) {
	r := open(t)
	for _, c := range []struct {
		who  Caller
		line string
		want bool
	}{
		{Caller{Principal: owner()}, "/greet Ada", true},
		{Caller{Principal: owner()}, "/list_things", true},
		{Caller{Principal: owner()}, "/list-things", true}, // its former name
		{Caller{Principal: capability.Principal{ID: "bob"}}, "/greet Ada", false},
		{Caller{Principal: capability.Principal{ID: "eve"}}, "/greet Ada", true},
		{Caller{Principal: capability.Principal{ID: "eve"}}, "/list_things", false},
		{Caller{Principal: capability.Principal{ID: "local", Tenant: "other"}}, "/list_things", false},
		{Caller{Principal: owner(), Agent: true}, "/list_things", false},
		{Caller{Principal: owner(), Agent: true}, "/greet Ada", true},
		{Caller{Principal: capability.Principal{ID: "bob"}, Agent: true}, "/greet Ada", false},
	} {
		if got := r.For(c.who).Is(c.line); got != c.want {
			t.Errorf("%s is a command of %+v: %v, want %v", c.line, c.who, got, c.want)
		}
	}
	bob := Caller{Principal: capability.Principal{ID: "bob"}}
	for _, c := range r.For(bob).Complete("/gre", 4) {
		t.Errorf("%+v is completed for whoever it is hidden from", c)
	}
	_, hidden := r.Route(t.Context(), bob, "/greet Ada")
	_, absent := r.Route(t.Context(), bob, "/great Ada")
	if hidden == nil || absent == nil || capability.KindOf(hidden) != capability.KindOf(absent) {
		t.Errorf("Route of what is hidden = %v, of what is not there = %v; want them alike", hidden, absent)
	}
}

// TestAllFollowsTheCatalog: a command that is added or removed counts for the
// next line.
func TestAllFollowsTheCatalog(t *testing.T) {
	r := open(t)
	r.All()
	r.memory.Put(capability.Capability{
		ID: "tool:later", Kind: capability.KindTool, Name: "later", Description: "Came later", Run: &capability.Recipe{Runner: "function.later"},
	}, capability.Detail{})
	r.memory.Remove("tool:greet")
	if err := r.Catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := r.All(); !now.Is("/later") || now.Is("/greet Ada") {
		t.Errorf("after the catalog changed /later is a command: %v, and /greet: %v", now.Is("/later"), now.Is("/greet Ada"))
	}
}

// TestRoute: a line becomes the call it stands for, by the schema of its target,
// which is read once.
func TestRoute(t *testing.T) {
	r := open(t)
	for range 2 {
		call, err := r.Route(t.Context(), Caller{Principal: owner()}, "/greet Ada")
		if err != nil || call.Target != "tool:greet" || string(call.Arguments) != `{"name":"Ada"}` {
			t.Errorf("Route = %+v, %v", call, err)
		}
	}
	if r.lookups != 1 {
		t.Errorf("the schema was read %d times, want once", r.lookups)
	}
	if _, err := r.Route(t.Context(), Caller{Principal: owner()}, "/greet"); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("Route without what is required = %v, want its name", err)
	}
}

// TestWithoutRules: where there are no rules a line of somebody's is refused for
// that, as far as they may know, and not as a name that nobody knows.
func TestWithoutRules(t *testing.T) {
	r := open(t)
	eve := capability.Principal{ID: "eve"}
	if err := r.Denied(eve); err != nil {
		t.Fatalf("with rules Denied = %v", err)
	}
	r.Rules = nil
	for _, who := range []Caller{{Principal: eve}, {Principal: eve, Agent: true}} {
		_, err := r.Route(t.Context(), who, "/greet Ada")
		if capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), "the file of eve is broken (no-rules); ken doctor says where") {
			t.Errorf("Route of %+v = %v, want that there are no rules", who, err)
		}
	}
	if _, err := r.Route(t.Context(), Caller{Principal: owner()}, "/greet Ada"); err != nil {
		t.Errorf("the owner's Route = %v; the call itself is denied, with its reason", err)
	}
}

// TestRead: a command of a turn is a call, or a text for the model; a line that
// looks like a command and is none is refused; any other text is the model's.
func TestRead(t *testing.T) {
	r := open(t)
	for _, c := range []struct {
		text, target, say string
		is                bool
		err               string
	}{
		{text: "/greet Ada", is: true, target: "tool:greet"},
		{text: "/review a.go b.go", is: true, say: "Review the file a.go b.go, and only a.go b.go."},
		{text: "/tidy", is: true, say: "Tidy up."},
		{text: "/tidy the attic", is: true, say: "Tidy up.\n\nthe attic"},
		{text: "/great Ada", is: true, err: "did you mean /greet? to say it to the model put a blank or a second slash before it"},
		{text: "/frobnicate", is: true, err: "to say it to the model put a blank or a second slash before it"},
		{text: "/greet", is: true, err: "name"},
		{text: " /greet Ada"},
		{text: "/etc/passwd is what?"},
		{text: "hello"},
	} {
		cmd, is, err := r.Read(t.Context(), event.Input{Principal: owner(), Text: c.text, Surface: "chat"})
		if is != c.is || string(cmd.Call.Target) != c.target || cmd.Say != c.say {
			t.Errorf("Read(%q) = %+v, %v; want target %q, text %q, %v", c.text, cmd, is, c.target, c.say, c.is)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("Read(%q) = %v, want %q", c.text, err, c.err)
		}
	}
	_, _, err := r.Read(t.Context(), event.Input{Principal: owner(), Text: "/greet"})
	if strings.Contains(err.Error(), "second slash") {
		t.Errorf("a command with a mistake is no text for the model: %v", err)
	}
}
