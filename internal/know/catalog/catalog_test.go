package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/know/source/mcptools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is a source that holds what it is given and yields what is sent to it.
type fixed struct {
	name    string
	batch   capability.Batch
	err     error
	changes chan capability.Batch
}

func (f *fixed) Name() string                                   { return f.name }
func (f *fixed) Load(context.Context) (capability.Batch, error) { return f.batch, f.err }
func (f *fixed) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case b := <-f.changes:
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

func tool(name string, change ...func(*capability.Capability)) *capability.Capability {
	c := &capability.Capability{
		ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name,
		Description: "does " + name, Category: "general", Trust: capability.TrustUser, Hash: "sha256:" + name,
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func from(name string, caps ...*capability.Capability) *fixed {
	for i, c := range caps {
		c.Origin = capability.Origin{Source: name, Path: name + ".yaml", Line: i + 1}
	}
	return &fixed{name: name, batch: capability.Batch{Capabilities: caps}, changes: make(chan capability.Batch)}
}

func loaded(t *testing.T, cfg Config) *Catalog {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

func codes(s *Snapshot) []string {
	var out []string
	for _, p := range s.Problems() {
		out = append(out, p.Code)
	}
	return out
}

func TestLaterSourceStandsBeforeEarlier(t *testing.T) {
	user, workspace := from("user", tool("a"), tool("b")), from("workspace", tool("a"))
	s := loaded(t, Config{Sources: []capability.Source{user, workspace}}).Snapshot()
	e, _ := s.Get("tool:a")
	if e.Origin.Source != "workspace" || s.Len() != 2 {
		t.Errorf("tool:a is from %s among %d, want workspace among 2", e.Origin.Source, s.Len())
	}
	shadowed := slices.Collect(s.Shadowed())
	if len(shadowed) != 1 || shadowed[0].Origin.Source != "user" || shadowed[0].State != Shadowed {
		t.Fatalf("shadowed = %v, want the one of user", shadowed)
	}
	p := s.Problems()[0]
	if p.Code != "duplicate-id" || !strings.Contains(p.String(), "user.yaml:1") || !strings.Contains(p.String(), "workspace.yaml:1") {
		t.Errorf("problem = %v, want duplicate-id with both places", p)
	}
	if got := len(s.Listing().Capabilities); got != 3 {
		t.Errorf("the listing has %d, want all 3", got)
	}
}

// TestLessTrustedReplacesNothing: a project or a URL adds ids and replaces
// none, whatever its place in the order, until the user accepts exactly that
// text. (C12)
func TestLessTrustedReplacesNothing(t *testing.T) {
	trusted := func(trust capability.Trust, hash string) func(*capability.Capability) {
		return func(c *capability.Capability) { c.Trust, c.Hash = trust, hash }
	}
	const builtin, user, workspace, remote = capability.TrustBuiltin, capability.TrustUser, capability.TrustWorkspace, capability.TrustRemote
	for _, row := range []struct {
		first, second capability.Trust
		accepted      string
		wins          string
	}{
		{user, workspace, "", "first"}, {workspace, user, "", "second"}, {builtin, workspace, "", "first"},
		{user, remote, "", "first"}, {remote, workspace, "", "first"}, {workspace, workspace, "", "second"},
		{builtin, user, "", "second"}, {user, user, "", "second"},
		{user, workspace, "sha256:second", "second"}, {user, workspace, "sha256:other", "first"}, {user, remote, "sha256:second", "second"},
	} {
		cfg := Config{Sources: []capability.Source{
			from("first", tool("a", trusted(row.first, "sha256:first"))), from("second", tool("a", trusted(row.second, "sha256:second")), tool("b")),
		}}
		if row.accepted != "" {
			cfg.Overrides = map[capability.ID]string{"tool:a": row.accepted}
		}
		s := loaded(t, cfg).Snapshot()
		if e, _ := s.Get("tool:a"); e.Origin.Source != row.wins {
			t.Errorf("%v then %v, accepted %q: the %s stands, want the %s", row.first, row.second, row.accepted, e.Origin.Source, row.wins)
		}
		lost := slices.Collect(s.Shadowed())[0]
		said := strings.Contains(lost.Reasons.String(), "ken config set 'catalog.overrides.tool:a' "+lost.Hash)
		want := lost.Trust < user && row.accepted != "sha256:second" && row.first != row.second
		fix := "" // the user may replace Ken's own capabilities
		if list := s.Problems(); len(list) > 0 {
			fix = list[0].Fix
		}
		if said != want || strings.Contains(fix, "catalog.overrides") != want || (fix == "") != (lost.Trust == builtin) {
			t.Errorf("%v then %v: reasons %q, fix %q; want the command that accepts it: %v", row.first, row.second, lost.Reasons, fix, want)
		}
	}
	bad := tool("a", trusted(user, "sha256:first"), func(c *capability.Capability) {
		c.Findings = []capability.Finding{{Rule: "override", Field: "description", Excerpt: "…"}}
	})
	s := loaded(t, Config{Sources: []capability.Source{from("user", bad), from("workspace", tool("a", trusted(workspace, "")))}}).Snapshot()
	if e, _ := s.Get("tool:a"); e.Origin.Source != "user" {
		t.Errorf("tool:a is from %s, want user: that it is quarantined gives its id to nobody", e.Origin.Source)
	}
}

// TestServerIDsAreOfServers: a file cannot use the id of an MCP server's tool,
// whatever its trust and whether or not the server was listed.
func TestServerIDsAreOfServers(t *testing.T) {
	claim := tool("a", func(c *capability.Capability) { c.ID = "mcp:memory/extra" })
	shouted := tool("c", func(c *capability.Capability) { c.ID = "MCP:memory/loud" })
	real := tool("b", func(c *capability.Capability) { c.ID = "mcp:memory/real" })
	server := from("mcp:memory", real)
	real.Origin.Format = mcptools.Format
	s := loaded(t, Config{Sources: []capability.Source{from("file", claim, shouted), server}}).Snapshot()
	if _, ok := s.Get("mcp:memory/extra"); ok {
		t.Error("a file brought mcp:memory/extra")
	}
	if _, ok := s.Get("MCP:memory/loud"); ok {
		t.Error("a file brought MCP:memory/loud")
	}
	if _, ok := s.Get("mcp:memory/real"); !ok {
		t.Error("the server's own tool is gone")
	}
	p := s.Problems()[0]
	if p.Code != "server-id" || p.Severity != capability.Grave || p.Origin.Path != "file.yaml" || s.Stats().Errors != 2 {
		t.Errorf("problem = %+v, want a grave server-id of the file", p)
	}
}

// TestUnicodeForms: an id is found in every Unicode form, and there is one entry
// for all of them.
func TestUnicodeForms(t *testing.T) {
	const composed, decomposed = "cr\u00e8me", "cre\u0300me"
	m := source.NewMemory("m", capability.TrustUser)
	m.Put(*tool(decomposed), capability.Detail{})
	m.Put(*tool("sauce", func(c *capability.Capability) { c.RequiredTools = []string{decomposed} }), capability.Detail{})
	m.Put(*tool(composed), capability.Detail{})
	s := loaded(t, Config{Sources: []capability.Source{m, from("raw", tool("the\u0301"))}}).Snapshot()
	if s.Len() != 2 {
		t.Errorf("%d entries, want one for both forms and sauce", s.Len())
	}
	for _, name := range []string{"tool:" + composed, "tool:" + decomposed, composed, decomposed} {
		if e, err := s.Lookup(name); err != nil || e.ID != "tool:"+composed {
			t.Errorf("Lookup(%+q) = %v, %v", name, e, err)
		}
	}
	if e, _ := s.Get("tool:sauce"); !slices.Equal(e.Requires, []capability.ID{"tool:" + composed}) {
		t.Errorf("sauce requires %v, want the one in form C", e.Requires)
	}
	// A source that does not seal what it brings is told.
	if got := codes(s); !slices.Equal(got, []string{"id-form"}) {
		t.Errorf("problems = %v, want id-form", got)
	}
}

func TestFirstStandsWithinOneSource(t *testing.T) {
	s := loaded(t, Config{Sources: []capability.Source{from("x", tool("a"), tool("a"))}}).Snapshot()
	if e, _ := s.Get("tool:a"); e.Origin.Line != 1 || e.State != Active {
		t.Errorf("tool:a is from line %d, %s, want line 1, active", e.Origin.Line, e.State)
	}
	if got := codes(s); !slices.Contains(got, "duplicate-id") {
		t.Errorf("problems = %v, want duplicate-id", got)
	}
}

func TestQuarantinedNeverStandsBeforeActive(t *testing.T) {
	bad := tool("a", func(c *capability.Capability) {
		c.Findings = []capability.Finding{{Rule: "override", Field: "description", Excerpt: "…"}}
	})
	s := loaded(t, Config{Sources: []capability.Source{from("user", tool("a")), from("workspace", bad)}}).Snapshot()
	if e, _ := s.Get("tool:a"); e.Origin.Source != "user" {
		t.Errorf("tool:a is from %s, want user: the other is quarantined", e.Origin.Source)
	}
}

func TestReplaceAddsUpdatesAndDeletes(t *testing.T) {
	a, b := from("a", tool("one"), tool("two")), from("b", tool("three"))
	c := loaded(t, Config{Sources: []capability.Source{a, b}})
	before := c.Snapshot()
	newTwo := tool("two", func(c *capability.Capability) {
		c.Version = "2"
		c.Migrations = []capability.Migration{{From: "", To: "2", Note: "unused"}, {From: "1", To: "2", Note: "rename q to query"}}
	})
	newTwo.Origin.Source = "a"
	after := c.Replace("a", capability.Batch{Capabilities: []*capability.Capability{newTwo, tool("four")}})
	if after.Version() != before.Version()+1 {
		t.Errorf("version went from %d to %d, want one more", before.Version(), after.Version())
	}
	var got []string
	for _, ch := range after.Changes() {
		got = append(got, fmt.Sprintf("%s %s", ch.What, ch.ID))
	}
	want := []string{"added tool:four", "removed tool:one", "updated tool:two"}
	if !slices.Equal(got, want) {
		t.Errorf("changes = %v, want %v", got, want)
	}
	if _, ok := after.Get("tool:three"); !ok {
		t.Error("a capability of another source is gone")
	}
	if _, ok := before.Get("tool:one"); !ok || before.Len() != 3 {
		t.Error("the older snapshot changed")
	}
}

func TestMigrationNoteReachesUsersOfTheOldVersion(t *testing.T) {
	version := func(v string, notes ...capability.Migration) *capability.Capability {
		return tool("a", func(c *capability.Capability) { c.Version, c.Migrations = v, notes })
	}
	src := from("s", version("1"))
	c := loaded(t, Config{Sources: []capability.Source{src}})
	s := c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{
		version("2", capability.Migration{From: "1", To: "2", Note: "rename q to query"}),
	}})
	if got := s.Changes(); len(got) != 1 || got[0].Note != "rename q to query" || got[0].From != "1" || got[0].To != "2" {
		t.Errorf("changes = %+v, want the note from 1 to 2", got)
	}
}

func TestUnreadableSourceCostsOnlyItselfAndKeepsTheLastGood(t *testing.T) {
	a, b := from("a", tool("one")), from("b", tool("two"))
	c := loaded(t, Config{Sources: []capability.Source{a, b}})
	a.err = errors.New("load a: permission denied")
	if err := c.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := c.Snapshot()
	if s.Len() != 2 || !slices.Contains(codes(s), "source-unreadable") {
		t.Errorf("%d capabilities, problems %v; want both and source-unreadable", s.Len(), codes(s))
	}
	a.err = nil
	_ = c.Load(context.Background())
	if got := codes(c.Snapshot()); len(got) != 0 {
		t.Errorf("problems after the fix = %v, want none", got)
	}
}

func TestFallbackOnlyWhileThereIsNothingElse(t *testing.T) {
	starter, own := from("starter", tool("s")), from("own")
	c := loaded(t, Config{Sources: []capability.Source{own}, Fallback: starter})
	if _, ok := c.Snapshot().Get("tool:s"); !ok {
		t.Error("the fallback is not used in an empty catalog")
	}
	s := c.Replace("own", capability.Batch{Capabilities: []*capability.Capability{tool("mine")}})
	if _, ok := s.Get("tool:s"); ok || s.Len() != 1 {
		t.Errorf("%d capabilities, want only the own one", s.Len())
	}
}

// TestFallbackStaysBesideTexts: whoever adds a skill to what the program has adds
// it, and one in the place of the program's own stands before that.
func TestFallbackStaysBesideTexts(t *testing.T) {
	text := func(kind capability.Kind, name string) *capability.Capability {
		return tool(name, func(c *capability.Capability) { c.ID, c.Kind = capability.MakeID(kind, name), kind })
	}
	starter := from("starter", tool("s"), text(capability.KindSkill, "review"))
	for _, c := range starter.batch.Capabilities {
		c.Trust = capability.TrustBuiltin
	}
	own := from("own", text(capability.KindSkill, "review"), text(capability.KindCard, "card"), text(capability.KindCommand, "fix"))
	c := loaded(t, Config{Sources: []capability.Source{own}, Fallback: starter})
	s := c.Snapshot()
	if _, ok := s.Get("tool:s"); !ok || s.Len() != 4 {
		t.Errorf("%d capabilities, want the three texts and the tool of the fallback", s.Len())
	}
	if e, _ := s.Get("skill:review"); e.Origin.Source != "own" {
		t.Errorf("skill:review is from %s, want own", e.Origin.Source)
	}
	if got := codes(s); len(got) != 0 {
		t.Errorf("problems %v, want none: the fallback is there to be replaced", got)
	}
	if n := len(slices.Collect(s.Shadowed())); n != 1 {
		t.Errorf("%d are shadowed, want the fallback's skill:review", n)
	}
	for _, kind := range []capability.Kind{capability.KindTool, capability.KindChannel, capability.KindProductivity} {
		s = c.Replace("own", capability.Batch{Capabilities: []*capability.Capability{text(kind, "mine")}})
		if _, ok := s.Get("tool:s"); ok || s.Len() != 1 {
			t.Errorf("beside a %s there are %d capabilities, want it alone", kind, s.Len())
		}
	}
}

// TestNoRunner: a capability that nothing here runs is unavailable, with the
// reason, and lint reports it. Texts and packages need no runner, and a catalog
// without a check of runners reports nothing.
func TestNoRunner(t *testing.T) {
	const why = "nothing can run it in this version"
	unrun := func(c *capability.Capability) string {
		if c.RunBy() == "exec.git" {
			return ""
		}
		return why
	}
	by := func(runner string) func(*capability.Capability) {
		return func(c *capability.Capability) { c.Run = &capability.Recipe{Runner: runner} }
	}
	kind := func(k capability.Kind) func(*capability.Capability) {
		return func(c *capability.Capability) { c.Kind = k }
	}
	tests := []struct {
		name  string
		unrun func(*capability.Capability) string
		c     *capability.Capability
		want  string
	}{
		{"run here", unrun, tool("x", by("exec.git")), ""},
		{"run nowhere", unrun, tool("x", by("api.rest")), why},
		{"no recipe", unrun, tool("x"), why},
		{"a text", unrun, tool("x", kind(capability.KindSkill)), ""},
		{"a package", unrun, tool("x", kind(capability.KindExtension)), ""},
		{"its source says why", unrun, tool("x", func(c *capability.Capability) { c.Unavailable = "not installed" }), "not installed"},
		{"nobody runs", nil, tool("x", by("api.rest")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := loaded(t, Config{Sources: []capability.Source{from("s", tt.c)}, Machine: Machine{Unrun: tt.unrun}}).Snapshot()
			e, _ := s.Get("tool:x")
			if got := e.Missing.String(); got != tt.want || e.Available != (tt.want == "") {
				t.Errorf("Missing = %q, Available = %v, want %q", got, e.Available, tt.want)
			}
			if !strings.Contains(e.Verdict(), tt.want) {
				t.Errorf("Verdict() = %q, want %q in it", e.Verdict(), tt.want)
			}
			if told := slices.Contains(codes(s), "no-runner"); told != (tt.want == why) {
				t.Errorf("problems = %v, want no-runner: %v", s.Problems(), tt.want == why)
			}
		})
	}
	// Several in one file are one problem.
	s := loaded(t, Config{Machine: Machine{Unrun: unrun}, Sources: []capability.Source{&fixed{name: "s", batch: capability.Batch{
		Capabilities: []*capability.Capability{tool("a"), tool("b"), tool("c"), tool("d"), tool("e")},
	}}}}).Snapshot()
	if got := s.Problems(); len(got) != 1 || got[0].Message != "tool:a, tool:b, tool:c and 2 more: "+why {
		t.Errorf("problems = %v, want one that counts them", got)
	}
}

// TestOwnToolsAreRequired: the tools of the program can be required like any
// other, by id, name or alias. (S4.14)
func TestOwnToolsAreRequired(t *testing.T) {
	for name, want := range map[string]bool{"shell": true, "tool:shell": true, "run_command": true, "ask_user": true, "nothing": false} {
		c := tool("x", func(c *capability.Capability) { c.Kind, c.RequiredTools = capability.KindSkill, []string{name} })
		s := loaded(t, Config{Sources: []capability.Source{from("s", c)}, Own: []capability.ID{"tool:shell", "tool:run_command"}, Machine: Machine{}}).Snapshot()
		if e, _ := s.Get("tool:x"); e.Available != want {
			t.Errorf("a skill that requires %s: available %v (%v), want %v", name, e.Available, e.Missing, want)
		}
	}
}

func TestAvailabilityNamesWhatIsMissing(t *testing.T) {
	has := func(words string) func(string) bool {
		return func(s string) bool { return slices.Contains(strings.Fields(words), s) }
	}
	m := Machine{Platform: "linux", HasSecret: has("KEY"), HasBin: has("git jq")}
	needs := func(f func(*capability.Capability)) *capability.Capability { return tool("x", f) }
	tests := []struct {
		name string
		c    *capability.Capability
		want string // part of the one reason; empty: available
	}{
		{"nothing", needs(func(*capability.Capability) {}), ""},
		{"all there", needs(func(c *capability.Capability) {
			c.RequiredBins, c.RequiredSecrets, c.RequiredPlatforms = []string{"git"}, []string{"KEY"}, []string{"linux", "darwin"}
		}), ""},
		{"program", needs(func(c *capability.Capability) { c.RequiredBins = []string{"gh"} }), "program gh"},
		{"secret", needs(func(c *capability.Capability) { c.RequiredSecrets = []string{"TOKEN"} }), "secret TOKEN"},
		{"platform", needs(func(c *capability.Capability) { c.RequiredPlatforms = []string{"darwin"} }), "darwin"},
		{"said by the source", needs(func(c *capability.Capability) { c.Unavailable = "not installed" }), "not installed"},
		{"tool by name", needs(func(c *capability.Capability) { c.RequiredTools = []string{"dep"} }), ""},
		{"program among a skill's tools", needs(func(c *capability.Capability) {
			c.Kind, c.RequiredTools = capability.KindSkill, []string{"jq"}
		}), ""},
		{"tool that is nowhere", needs(func(c *capability.Capability) { c.RequiredTools = []string{"nowhere"} }), "nowhere"},
		{"tool whose tool cannot be used", needs(func(c *capability.Capability) { c.RequiredTools = []string{"tool:middle"} }), "tool:middle"},
		{"tools that need each other", needs(func(c *capability.Capability) { c.RequiredTools = []string{"tool:round"} }), ""},
		{"tool that cannot be used", needs(func(c *capability.Capability) { c.RequiredTools = []string{"tool:broken"} }), "tool:broken"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := tool("broken", func(c *capability.Capability) { c.RequiredSecrets = []string{"TOKEN"} })
			// By its id it comes after what needs it, so one pass is not enough.
			middle := tool("middle", func(c *capability.Capability) { c.RequiredTools = []string{"zz"} })
			last := tool("zz", func(c *capability.Capability) { c.RequiredTools = []string{"broken"} })
			round := tool("round", func(c *capability.Capability) { c.RequiredTools = []string{"x"} })
			s := loaded(t, Config{Sources: []capability.Source{from("s", tt.c, tool("dep"), broken, middle, last, round)}, Machine: m}).Snapshot()
			e, _ := s.Get("tool:x")
			if e.Available != (tt.want == "") || !strings.Contains(e.Missing.String(), tt.want) {
				t.Errorf("Available = %v, Missing = %q, want a reason with %q", e.Available, e.Missing, tt.want)
			}
		})
	}
}

func TestPins(t *testing.T) {
	suspicious := func(c *capability.Capability) {
		c.Findings = []capability.Finding{{Rule: "override", Field: "body", Line: 3, Excerpt: "…"}}
	}
	tests := []struct {
		name string
		c    *capability.Capability
		pin  string
		want State
		say  string
	}{
		{"clean, no pin", tool("x"), "", Active, ""},
		{"suspicious, no pin", tool("x", suspicious), "", Quarantined, "override"},
		{"suspicious, pinned", tool("x", suspicious), "sha256:x", Active, "released"},
		{"clean, pinned", tool("x"), "sha256:x", Active, ""},
		{"changed since pinned", tool("x"), "sha256:old", Quarantined, "changed since it was pinned: catalog.pins has sha256:old, it is now sha256:x"},
		{"a warning alone", tool("x", func(c *capability.Capability) {
			c.Findings = []capability.Finding{{Rule: "bidi", Severity: capability.Warning}}
		}), "", Active, "bidi"},
		{"Ken's own name", tool("discover-capabilities"), "", Quarantined, "looks like discover_capabilities"},
		{"Ken's own name as an id", tool("y", func(c *capability.Capability) { c.ID = "tool:invoke_capability" }), "", Quarantined, "looks like invoke_capability"},
		{"Ken's own name as an alias", tool("y", func(c *capability.Capability) { c.Aliases = []string{"Ask_User"} }), "", Quarantined, "looks like ask_user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Sources: []capability.Source{from("s", tt.c)}}
			if tt.pin != "" {
				cfg.Pins = map[capability.ID]string{tt.c.ID: tt.pin}
			}
			e, _ := loaded(t, cfg).Snapshot().Get(tt.c.ID)
			if e.State != tt.want || !strings.Contains(e.Reasons.String(), tt.say) {
				t.Errorf("State = %s, Reasons = %q, want %s with %q", e.State, e.Reasons, tt.want, tt.say)
			}
		})
	}
}

// TestServersShareNames: two MCP servers of one kind have the same tools, which
// is nothing to warn of; one server with a name twice is.
func TestServersShareNames(t *testing.T) {
	of := func(server, id string) *capability.Capability {
		return tool("read_file", func(c *capability.Capability) { c.ID, c.Category = capability.ID(id), server })
	}
	tests := []struct {
		name string
		list []*capability.Capability
		want int
	}{
		{"two servers", []*capability.Capability{of("one", "mcp:one/read_file"), of("two", "mcp:two/read_file")}, 0},
		{"one server", []*capability.Capability{of("one", "mcp:one/read_file"), of("one", "mcp:one/Read_file")}, 1},
		{"a server and a file", []*capability.Capability{of("one", "mcp:one/read_file"), tool("read_file")}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := from("s", tt.list...)
			for _, c := range tt.list {
				if c.Category != "general" {
					c.Origin.Format = mcptools.Format
				}
			}
			var got []capability.Problem
			for _, p := range loaded(t, Config{Sources: []capability.Source{src}}).Snapshot().Problems() {
				if p.Code == "same-name" {
					got = append(got, p)
				}
			}
			if len(got) != tt.want {
				t.Errorf("same-name = %v, want %d of them", got, tt.want)
			}
		})
	}
}

func TestNamesThatLookAlikeAreFlagged(t *testing.T) {
	shadow := tool("Read-File", func(c *capability.Capability) { c.Trust = capability.TrustRemote })
	again := tool("read_file", func(c *capability.Capability) { c.ID = "other/read_file" })
	s := loaded(t, Config{Sources: []capability.Source{from("s", tool("read_file"), shadow, again, tool("write_file"))}}).Snapshot()
	var alike, same []capability.Problem
	for _, p := range s.Problems() {
		switch p.Code {
		case "looks-alike":
			alike = append(alike, p)
		case "same-name":
			same = append(same, p)
		}
	}
	if len(alike) == 0 || alike[0].Subject != shadow.ID {
		t.Errorf("looks-alike = %v, want the less trusted %s", alike, shadow.ID)
	}
	if len(same) != 1 {
		t.Errorf("same-name = %v, want one for read_file", same)
	}
}

// TestShadowingNamesAreFlagged puts every name of the corpus beside the one it
// shadows.
func TestShadowingNamesAreFlagged(t *testing.T) {
	dir := os.Getenv("KEN_ATTACKS")
	if dir == "" {
		t.Skip("KEN_ATTACKS is not set: the corpus is elsewhere")
	}
	data, err := os.ReadFile(filepath.Join(dir, "tool_name_shadowing.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(data)) {
		var row struct{ Text, Shadows string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows++
		m := source.NewMemory("m", capability.TrustUser)
		m.Put(capability.Capability{Name: row.Shadows}, capability.Detail{})
		m.Put(capability.Capability{Name: row.Text}, capability.Detail{})
		s := loaded(t, Config{Sources: []capability.Source{m}}).Snapshot()
		e, ok := s.Get(capability.MakeID(capability.KindTool, row.Text))
		flagged := slices.ContainsFunc(s.Problems(), func(p capability.Problem) bool { return p.Subject == e.ID || p.Code == "looks-alike" })
		if !ok || !flagged {
			t.Errorf("%q beside %q is neither quarantined nor reported", row.Text, row.Shadows)
		}
	}
	if rows != 94 {
		t.Errorf("%d rows, want 94", rows)
	}
}

func TestBodiesOfUntrustedPlacesAreWithheld(t *testing.T) {
	for _, tt := range []struct {
		trust    capability.Trust
		allow    bool
		withheld bool
	}{
		{capability.TrustBuiltin, false, false}, {capability.TrustUser, false, false},
		{capability.TrustWorkspace, false, true}, {capability.TrustRemote, false, true},
		{capability.TrustWorkspace, true, false},
	} {
		c := tool("x", func(c *capability.Capability) { c.Trust = tt.trust })
		e, _ := loaded(t, Config{Sources: []capability.Source{from("s", c)}, WorkspaceBodies: tt.allow}).Snapshot().Get("tool:x")
		if (e.Withheld != "") != tt.withheld {
			t.Errorf("trust %s, allowed %v: Withheld = %q, want withheld %v", tt.trust, tt.allow, e.Withheld, tt.withheld)
		}
	}
}

func TestQuarantinedNamesakeDoesNotGetInTheWay(t *testing.T) {
	mine := tool("mine", func(c *capability.Capability) { c.RequiredTools = []string{"helper"} })
	evil := tool("helper", func(c *capability.Capability) {
		c.ID, c.Trust = "evil/helper", capability.TrustWorkspace
		c.Findings = []capability.Finding{{Rule: "override"}}
	})
	victim := tool("victim", func(c *capability.Capability) { c.RequiredTools = []string{"evil/helper"} })
	s := loaded(t, Config{Sources: []capability.Source{from("user", mine, tool("helper")), from("workspace", evil, victim)}}).Snapshot()
	if e, _ := s.Get("tool:mine"); !e.Available || len(e.Requires) != 1 || e.Requires[0] != "tool:helper" {
		t.Errorf("mine requires %v, available %v (%v); want the user's helper", e.Requires, e.Available, e.Missing)
	}
	if e, err := s.Lookup("helper"); err != nil || e.ID != "tool:helper" {
		t.Errorf("Lookup(helper) = %v, %v, want the user's", e, err)
	}
	if e, _ := s.Get("tool:victim"); e.Available {
		t.Error("what needs a quarantined capability counts as usable")
	}
}

func TestNamesThatAreNowhereAreReported(t *testing.T) {
	src := from("s", tool("search"))
	src.batch.Presets = []capability.Preset{{Name: "p", Members: []string{"search", "serch"}, Origin: capability.Origin{Path: "presets.yaml", Line: 2}}}
	s := loaded(t, Config{Sources: []capability.Source{src}, Mentions: []Mention{
		{ID: "tool:search", By: "capabilities.exclude", Origin: "ken.yaml:3"}, {ID: "tool:gone", By: "catalog.pins", Origin: "ken.yaml:5"},
	}}).Snapshot()
	var got []string
	for _, p := range s.Problems() {
		got = append(got, p.String())
	}
	want := []string{
		"ken.yaml:5: warning: catalog.pins names tool:gone, which is not in the catalog; remove it, or correct it",
		"presets.yaml:2: warning: the preset p names serch, which is not in the catalog; did you mean search?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLookupSaysWhatWasMeant(t *testing.T) {
	other := tool("b", func(c *capability.Capability) { c.ID, c.Name = "srv/search", "search" })
	s := loaded(t, Config{Sources: []capability.Source{from("s", tool("search"), other, tool("web-browser"))}}).Snapshot()
	if e, err := s.Lookup("web-browser"); err != nil || e.ID != "tool:web-browser" {
		t.Errorf("Lookup(web-browser) = %v, %v", e, err)
	}
	if _, err := s.Lookup("search"); err == nil || !strings.Contains(err.Error(), "srv/search, tool:search") {
		t.Errorf("Lookup of a shared name: %v, want both ids", err)
	}
	if _, err := s.Lookup("web-browsr"); capability.KindOf(err) != capability.NotFound || !strings.Contains(err.Error(), "web-browser") {
		t.Errorf("Lookup of a typo: %v, want not found, naming web-browser", err)
	}
	for _, other := range []string{"srv/sailor", "\x00", "tool:seals"} { // like one that is there in its first part alone, or in its length
		if _, err := s.Lookup(other); err == nil || !strings.Contains(err.Error(), "see ken catalog list") {
			t.Errorf("Lookup(%q): %v, want no name that was not meant", other, err)
		}
	}
}

func TestWatchSwapsSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := from("s", tool("one"))
		c := loaded(t, Config{Sources: []capability.Source{src}})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- c.Watch(ctx) }()
		src.changes <- capability.Batch{Capabilities: []*capability.Capability{tool("two")}}
		synctest.Wait()
		if _, ok := c.Snapshot().Get("tool:two"); !ok || c.Snapshot().Len() != 1 {
			t.Error("the change is not in the snapshot")
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch = %v, want nil at the end of ctx", err)
		}
	})
}

func TestNextWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := loaded(t, Config{Sources: []capability.Source{from("s", tool("one"))}})
		if s, err := c.Next(t.Context(), 0); err != nil || s.Version() != 1 {
			t.Errorf("Next(0) = %v, %v, want version 1 at once", s, err)
		}
		got := make(chan *Snapshot)
		go func() {
			s, _ := c.Next(t.Context(), 1)
			got <- s
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Error("Next(1) returned before a change")
		default:
		}
		c.Replace("s", capability.Batch{})
		if s := <-got; s == nil || s.Version() != 2 {
			t.Errorf("Next(1) = %v, want version 2", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Next(ctx, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("Next with an ended context: %v", err)
		}
	})
}

func TestChangesSinceMergesVersions(t *testing.T) {
	c := loaded(t, Config{Sources: []capability.Source{from("s", tool("a"), tool("b"))}})
	a, b := c.Snapshot().entries[0].Capability, c.Snapshot().entries[1].Capability
	c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{a, b, tool("x")}})
	c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{a, tool("x"), tool("y")}})
	latest, changes, complete := c.ChangesSince(1)
	var got []string
	for _, ch := range changes {
		got = append(got, ch.What+" "+string(ch.ID))
	}
	if want := []string{"removed tool:b", "added tool:x", "added tool:y"}; !complete || latest.Version() != 3 || !slices.Equal(got, want) {
		t.Errorf("ChangesSince(1) = version %d, %v, %v; want 3, %v", latest.Version(), got, complete, want)
	}
	if _, changes, complete := c.ChangesSince(3); !complete || len(changes) != 0 {
		t.Errorf("ChangesSince the latest = %v, %v", changes, complete)
	}
	c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{tool("a"), b}})
	// What went and came back counts as updated: it may be another.
	if _, changes, _ := c.ChangesSince(1); len(changes) != 2 || changes[0].What != "updated" || changes[1].What != "updated" {
		t.Errorf("after x and y are gone again, ChangesSince(1) = %v, want a and b updated", changes)
	}
	for i := range kept + 1 {
		c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{tool(fmt.Sprint(i))}})
	}
	if _, _, complete := c.ChangesSince(1); complete {
		t.Error("changes since a version that is long gone are called complete")
	}
}

func TestTwoSourcesOfOneNameAreRefused(t *testing.T) {
	if _, err := New(Config{Sources: []capability.Source{from("x"), from("x")}}); err == nil {
		t.Error("New accepted two sources of one name")
	}
}

// TestAdd: a source that comes later is listed, stands before the others, and
// is followed by a Watch that runs already.
func TestAdd(t *testing.T) {
	first := source.NewMemory("first", capability.TrustUser)
	first.Put(capability.Capability{ID: "tool:a", Name: "a", Description: "the first"}, capability.Detail{})
	c, err := New(Config{Sources: []capability.Source{first}, Fallback: source.NewMemory("fallback", capability.TrustBuiltin)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- c.Watch(ctx) }()
	later := source.NewMemory("later", capability.TrustUser)
	later.Put(capability.Capability{ID: "tool:a", Name: "a", Description: "the later"}, capability.Detail{Usage: "so"})
	if err := c.Add(ctx, later); err != nil {
		t.Fatal(err)
	}
	e, ok := c.Snapshot().Get("tool:a")
	if !ok || e.Description != "the later" {
		t.Fatalf("tool:a is %+v, want the later one", e)
	}
	if d, err := c.Inspect(ctx, e); err != nil || d.Usage != "so" {
		t.Errorf("Inspect = %+v, %v", d, err)
	}
	if err := c.Add(ctx, source.NewMemory("first", capability.TrustUser)); err == nil {
		t.Error("a second source of one name was taken")
	}
	version := c.Snapshot().Version()
	later.Put(capability.Capability{ID: "tool:b", Name: "b", Description: "more"}, capability.Detail{})
	for range 100 {
		s, err := c.Next(ctx, version)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get("tool:b"); ok {
			break
		}
		version = s.Version()
	}
	stop()
	if err := <-watched; err != nil {
		t.Errorf("Watch = %v", err)
	}
}
