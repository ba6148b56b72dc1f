package policy_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
)

// TestGrants: a grant covers what it names and nothing else, for as long as it
// says, and never lifts a refusal.
func TestGrants(t *testing.T) {
	r := parse(t, "intents: off\nrules: [{id: no-vendor, effect: deny, paths: ['vendor/**']}]")
	write := tool("write_to_file")
	write.Hash = "h1"
	base := ask(write)
	base.Action, base.Digest = "put", "d1"
	full := policy.Grant{ID: "g", Tenant: "acme", Principal: "ann", Capability: write.ID, Action: "put", Session: "s1"}
	for name, test := range map[string]struct {
		grant func(*policy.Grant)
		call  func(*policy.Request)
		want  policy.Effect
	}{
		"session":         {nil, nil, policy.Allow},
		"other session":   {nil, func(q *policy.Request) { q.Session = "s2" }, policy.Ask},
		"other action":    {nil, func(q *policy.Request) { q.Action = "del" }, policy.Ask},
		"other principal": {nil, func(q *policy.Request) { q.Principal.ID = "bob" }, policy.Ask},
		"other tenant":    {nil, func(q *policy.Request) { q.Principal.Tenant = "x" }, policy.Ask},
		"other tool":      {nil, func(q *policy.Request) { q.Capability.ID = "tool:y" }, policy.Ask},
		"same text":       {func(g *policy.Grant) { g.Hash = "h1" }, nil, policy.Allow},
		"changed text":    {func(g *policy.Grant) { g.Hash = "h0" }, nil, policy.Ask},
		"digest":          {func(g *policy.Grant) { g.Session, g.Digest = "", "d1" }, nil, policy.Allow},
		"other digest":    {func(g *policy.Grant) { g.Digest = "d2" }, nil, policy.Ask},
		"no scope":        {func(g *policy.Grant) { g.Session = "" }, nil, policy.Ask},
		"always":          {func(g *policy.Grant) { g.Session, g.Always = "", true }, nil, policy.Allow},
		"until later":     {func(g *policy.Grant) { g.Session, g.Until = "", time.Unix(1001, 0) }, nil, policy.Allow},
		"until now":       {func(g *policy.Grant) { g.Session, g.Until = "", time.Unix(1000, 0) }, nil, policy.Ask},
		"no clock":        {func(g *policy.Grant) { g.Until = time.Unix(2000, 0) }, func(q *policy.Request) { q.Time = time.Time{} }, policy.Ask},
		"zero":            {func(g *policy.Grant) { *g = policy.Grant{} }, nil, policy.Ask},
		"refused anyway":  {func(g *policy.Grant) { g.Always = true }, file("vendor/x"), policy.Deny},
		"each time":       {func(g *policy.Grant) { g.Always = true }, func(q *policy.Request) { q.Capability.Destructive = true }, policy.Ask},
		"each by digest":  {func(g *policy.Grant) { g.Digest = "d1" }, func(q *policy.Request) { q.Capability.Destructive = true }, policy.Allow},
	} {
		g, q := full, *base
		if test.grant != nil {
			test.grant(&g)
		}
		if test.call != nil {
			test.call(&q)
		}
		q.Grants = []policy.Grant{{}, g}
		d := r.Decide(&q)
		if d.Effect != test.want || (d.Effect == policy.Allow) != (d.Grant == "g") {
			t.Errorf("%s: Decide = %v by %s, grant %q, want %v", name, d.Effect, d.Reason.Rule, d.Grant, test.want)
		}
	}
}

// TestS340Risk: the parts add up, arguments only add, and the thresholds ask
// and refuse.
func TestS340Risk(t *testing.T) {
	r := parse(t, "profile: seed\nintents: off\naskAbove: 60\ndenyAbove: 90\ntoolAccess: {tools: {shell: {mode: full}}}")
	remote := made(policy.Network, capability.TrustRemote)
	destroys := remote
	destroys.Destructive = true
	for _, test := range []struct {
		name   string
		c      policy.Capability
		facts  policy.Facts
		score  uint8
		effect policy.Effect
	}{
		{"meta", tool("finish"), policy.Facts{}, 0, policy.Allow},
		{"read", tool("read_file"), policy.Facts{}, 5, policy.Allow},
		{"read two", tool("read_file"), policy.Facts{Paths: []policy.Path{{Name: "a"}, {Name: "b"}}}, 5, policy.Allow},
		{"remote", remote, policy.Facts{}, 50, policy.Allow},
		{"remote host", remote, policy.Facts{Hosts: []string{"a.com"}}, 55, policy.Allow},
		{"private host", remote, policy.Facts{Hosts: []string{"a.com", "127.0.0.1"}}, 70, policy.Ask},
		{"odd host", remote, policy.Facts{Hosts: []string{"0x7f.1"}}, 70, policy.Ask},
		{"destroys", destroys, policy.Facts{}, 75, policy.Ask},
		{"destroys near", destroys, policy.Facts{Hosts: []string{"localhost"}}, 95, policy.Deny},
		{"rm", tool("shell"), policy.Facts{Commands: [][]string{{"rm", "x"}}}, 65, policy.Ask},
		{"opaque rm", tool("shell"), policy.Facts{Commands: [][]string{{"rm", "x"}}, Opaque: "pipe"}, 85, policy.Ask},
	} {
		q := ask(test.c)
		q.Facts = test.facts
		d := r.Decide(q)
		if d.Risk.Score != test.score || d.Effect != test.effect {
			t.Errorf("%s: Decide = %v, risk %+v, want %v, %d", test.name, d.Effect, d.Risk, test.effect, test.score)
		}
		if sum := d.Risk.Effect + d.Risk.Trust + d.Risk.Reach + d.Risk.Destructive; sum != d.Risk.Score {
			t.Errorf("%s: the parts of %+v make %d", test.name, d.Risk, sum)
		}
	}
}

// TestOutboundPrograms: a program that uses the network is asked about each time,
// as other calls that reach beyond this machine are.
func TestOutboundPrograms(t *testing.T) {
	s := policy.Defaults(policy.Personal)
	s.Intents = policy.Off
	r := compile(t, s)
	for _, test := range []struct {
		permissions []string
		rule        string
		scope       policy.Scope
	}{
		{[]string{"exec"}, "personal.exec", policy.Session},
		{[]string{"exec", "network"}, "personal.outboundProgram", policy.Once},
	} {
		c := made(policy.Exec, capability.TrustUser)
		c.Declared, c.Required = policy.ParsePermissions(test.permissions), policy.ParsePermissions(test.permissions)
		if d := r.Decide(ask(c)); d.Effect != policy.Ask || d.Reason.Rule != test.rule || d.Needs.Scope != test.scope {
			t.Errorf("%v: Decide = %v by %s, %v, want Ask by %s, %v", test.permissions, d.Effect, d.Reason.Rule, d.Needs.Scope, test.rule, test.scope)
		}
	}
}

// TestCedarFiles: an organisation's policies decide, by name and place.
func TestCedarFiles(t *testing.T) {
	s := policy.Defaults(policy.Personal)
	s.Intents = policy.Off
	s.Cedar = []policy.CedarFile{{Name: "org.cedar", Text: []byte(`
@id("org.no-interns") @reason("Interns start no processes") @instead("Ask a colleague")
forbid (principal in Role::"intern", action, resource in Class::"exec");

forbid (principal, action, resource) when { context.path like "payroll/*" };

@id("org.wiki") permit (principal, action, resource in Class::"network") when { context.host == "wiki.acme.example" };

@id("org.slow") @ask("session")
forbid (principal, action, resource) when { context.command like "make *" };

@id("org.office") forbid (principal, action, resource) when { context.time > 5000 };
`)}}
	s.Access.Tools["shell"] = policy.Tool{Enabled: true, Mode: policy.AccessFull}
	r := compile(t, s)
	shell, net := tool("shell"), made(policy.Network, capability.TrustUser)
	shell.Destructive = false
	judge(t, r, ask(shell), []wants{
		{"intern", func(q *policy.Request) { q.Principal.Roles = []string{"intern"} }, policy.Deny, "org.no-interns"},
		{"others", func(*policy.Request) {}, policy.Ask, "personal.exec"},
		{"one path of two", func(q *policy.Request) {
			q.Facts.Paths = []policy.Path{{Name: "a"}, {Name: "payroll/x"}}
		}, policy.Deny, "org.cedar#2"},
		{"question", command("make", "all"), policy.Ask, "org.slow"},
		{"late", func(q *policy.Request) { q.Time = time.Unix(6000, 0) }, policy.Deny, "org.office"},
	})
	judge(t, r, ask(net), []wants{
		{"wiki", hosts("wiki.acme.example"), policy.Allow, "org.wiki"},
		{"wiki and more", hosts("wiki.acme.example", "other.example"), policy.Ask, "personal.outbound"},
	})
	q := ask(shell)
	q.Principal.Roles = []string{"intern"}
	if d := r.Decide(q); d.Reason.Where != "org.cedar:2:1" || d.Reason.Text != "Interns start no processes" || d.Reason.Instead == "" {
		t.Errorf("Decide(intern) = %+v", d.Reason)
	}
	var many policy.Facts
	for range 100 {
		many.Paths = append(many.Paths, policy.Path{Name: "a"})
	}
	q = ask(net)
	q.Facts = many
	if d := r.Decide(q); d.Effect == policy.Deny {
		t.Errorf("Decide(100 paths) = %v by %s", d.Effect, d.Reason.Rule)
	}
}

// TestCedarRefused: a file that does not parse, speaks of what there is not, or
// carries an unknown annotation is refused with its place, in words of people who
// write policies.
func TestCedarRefused(t *testing.T) {
	for text, want := range map[string]string{
		"permit(principal, action, resource)\n":                                                       "org.cedar:2:1: ; is missing at the end of the file",
		"permit(principal, action, resource) when { resource.kind == \"tool };":                       "org.cedar:1:61: a string is not closed: a quotation mark is missing",
		"permitt(principal, action, resource);":                                                       "org.cedar:1:8: a policy begins with permit or forbid, not with permitt",
		"permit(principal action, resource);":                                                         "org.cedar:1:24: , is missing before action",
		"permit(principal, action, resource) when { resource. };":                                     "a name is missing near \";\"",
		"permit(principal, action, resource) when { == 5 };":                                          "a value is missing near \"5\"",
		"permit(principal, action, resource) when { resource.knd == \"tool\" };":                      "org.cedar:1:1: attribute `knd` on entity type `Capability` not found; see the schema",
		"permit(principal, action == Action::\"cal\", resource);":                                     "org.cedar:1:1: unrecognized action `Action::\"cal\"`; see the schema",
		"\nforbid (principal, action, resource) when { context.pth == \"x\" };":                       "org.cedar:2:1",
		"forbid (principal, action, resource) when { context.risk == \"x\" };":                        "org.cedar:1:1",
		"@aks(\"once\") permit (principal, action, resource);":                                        "unknown annotation @aks",
		"@ask(\"never\") permit (principal, action, resource);":                                       "unknown value @ask(\"never\")",
		"@id(\"a\") permit(principal,action,resource); @id(\"a\") permit(principal,action,resource);": "two rules are named a",
		"\nforbid (principal, action, resource == Capability::\"tool:cre\u0300me\");":                 "line 2 is not in Unicode normalization form C",
	} {
		r, err := policy.Compile(policy.Settings{Cedar: []policy.CedarFile{{Name: "org.cedar", Text: []byte(text)}}})
		if err == nil || r != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%q) = %v, want %q", text, err, want)
			continue
		}
		for _, inner := range []string{"parse error", "<input>", "for policy"} {
			if strings.Contains(err.Error(), inner) {
				t.Errorf("Compile(%q) = %v, which says %q", text, err, inner)
			}
		}
	}
}

// TestCedarErrorsDeny: a policy that cannot be evaluated refuses the call,
// whatever else permits it.
func TestCedarErrorsDeny(t *testing.T) {
	s := policy.Defaults(policy.Seed)
	s.Intents = policy.Off
	s.Cedar = []policy.CedarFile{{Name: "org.cedar", Text: []byte(
		`@id("org.sum") forbid (principal, action, resource) when { context.time + 9223372036854775807 > 0 };`)}}
	q := ask(tool("read_file"))
	d := compile(t, s).Decide(q)
	if d.Effect != policy.Deny || d.Reason.Rule != "org.sum" || !strings.Contains(d.Reason.Text, "could not be evaluated") {
		t.Errorf("Decide = %v %+v", d.Effect, d.Reason)
	}
}

// TestOf: names are believed of this program only, hints only where they make
// Ken more careful; if the class is unknown, it is one that Ken asks about.
func TestOf(t *testing.T) {
	yes, no := capability.Yes, capability.No
	for name, test := range map[string]struct {
		c           capability.Capability
		class       policy.Class
		destructive bool
	}{
		"builtin":        {capability.Capability{Name: "read_file", Trust: capability.TrustBuiltin}, policy.Read, false},
		"impostor":       {capability.Capability{Name: "read_file", Trust: capability.TrustRemote}, policy.Network, true},
		"meta impostor":  {capability.Capability{Name: "finish", Trust: capability.TrustUser}, policy.Network, false},
		"claims":         {capability.Capability{Trust: capability.TrustRemote, Effects: capability.Effects{ReadOnly: yes, Destructive: no, OpenWorld: no}}, policy.Network, true},
		"believed":       {capability.Capability{Trust: capability.TrustUser, Effects: capability.Effects{ReadOnly: yes, OpenWorld: no}}, policy.Read, false},
		"admits":         {capability.Capability{Trust: capability.TrustUser, Effects: capability.Effects{Destructive: yes}}, policy.Network, true},
		"process":        {capability.Capability{Run: &capability.Recipe{Runner: "exec.git"}, Trust: capability.TrustUser}, policy.Exec, false},
		"address":        {capability.Capability{Run: &capability.Recipe{Runner: "api.rest"}, Trust: capability.TrustUser}, policy.Network, false},
		"strange runner": {capability.Capability{Run: &capability.Recipe{Runner: "magic"}, Trust: capability.TrustUser}, policy.Network, false},
		"server":         {capability.Capability{Run: &capability.Recipe{Runner: "mcp.call"}, Trust: capability.TrustUser}, policy.Write, false},
		"server reads":   {capability.Capability{Run: &capability.Recipe{Runner: "mcp.call"}, Trust: capability.TrustUser, Effects: capability.Effects{ReadOnly: yes, OpenWorld: yes}}, policy.Read, false},
		"server reaches": {capability.Capability{Run: &capability.Recipe{Runner: "mcp.call"}, Trust: capability.TrustUser, Effects: capability.Effects{OpenWorld: yes}}, policy.Network, false},
		"server breaks":  {capability.Capability{Run: &capability.Recipe{Runner: "mcp.call"}, Trust: capability.TrustUser, Effects: capability.Effects{Destructive: yes}}, policy.Write, true},
		"server claims":  {capability.Capability{Run: &capability.Recipe{Runner: "mcp.call"}, Trust: capability.TrustWorkspace, Effects: capability.Effects{ReadOnly: yes, Destructive: no}}, policy.Network, true},
		"skill":          {capability.Capability{Kind: capability.KindSkill}, policy.Meta, false},
	} {
		got := policy.Of(&test.c)
		if got.Class != test.class || got.Destructive != test.destructive {
			t.Errorf("%s: Of = %v destructive %v, want %v %v", name, got.Class, got.Destructive, test.class, test.destructive)
		}
	}
}

// TestClaimsLowerNothing: what a server claims and Ken does not believe leaves
// the class as it is, opens no intent to read, and is told in the question.
func TestClaimsLowerNothing(t *testing.T) {
	said := capability.Effects{ReadOnly: capability.Yes, Destructive: capability.No, Idempotent: capability.Yes, OpenWorld: capability.No}
	c := capability.Capability{
		ID: "mcp:s/delete_all_files", Name: "delete_all_files", Kind: capability.KindTool, Trust: capability.TrustUser, Origin: capability.Origin{Format: "mcp"},
		Run: &capability.Recipe{Runner: "mcp.call"}, Effects: said.Careful(), Claims: &capability.Claims{Effects: said, Doubt: "its hints are not trusted"},
	}
	of := policy.Of(&c)
	if of.Class != policy.Write || of.ReadOnly {
		t.Fatalf("Of = %v, read only %v, want write", of.Class, of.ReadOnly)
	}
	r := compile(t, policy.Defaults(policy.Personal))
	if r.IntentAllows("READ_FILE", of.Class) {
		t.Error("READ_FILE admits what only claims to read")
	}
	q := ask(of)
	q.Surface = policy.SurfaceMCP
	d := r.Decide(q)
	if d.Effect != policy.Ask || !strings.Contains(d.Needs.Why, "the server claims that the call only reads, but its hints are not trusted") {
		t.Errorf("Decide = %v %+v, want a question that tells the claim", d.Effect, d.Needs)
	}
}

// TestRefusalsAreResults: every refusal is a result with the reason, the rule,
// what is allowed and the knob, and an error of the right kind.
func TestRefusalsAreResults(t *testing.T) {
	r := compile(t, policy.Defaults(policy.Personal))
	q := ask(tool("write_to_file"))
	d := r.Decide(q)
	text := d.Result().Parts[0].Text
	for _, part := range []string{"Intent must be selected", "select_active_intent with CODE or WRITE_FILE", "intents.none.write", "policy.intents"} {
		if !strings.Contains(text, part) {
			t.Errorf("the refusal %q lacks %q", text, part)
		}
	}
	var e *capability.Error
	if err := d.Err(q.Capability.ID); !errors.As(err, &e) || e.Kind != capability.Denied || e.Rule != "intents.none.write" {
		t.Errorf("Err = %v", err)
	}
	q.Intent = "CODE"
	if d = r.Decide(q); capability.KindOf(d.Err("x")) != capability.Unapproved {
		t.Errorf("Err of a question = %v", d.Err("x"))
	}
	q = ask(tool("finish"))
	if d = r.Decide(q); d.Err("x") != nil {
		t.Errorf("Err of a permission = %v", d.Err("x"))
	}
}

// TestTogether: many goroutines get the answers that one gets.
func TestTogether(t *testing.T) {
	r := compile(t, thousand())
	var all []*policy.Request
	for _, list := range requests() {
		all = append(all, list...)
	}
	want := make([]policy.Decision, len(all))
	single := compile(t, thousand())
	for i, q := range all {
		want[i] = single.Decide(q)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range all {
				k := (i*7 + w*131) % len(all)
				if got := r.Decide(all[k]); got != want[k] {
					t.Errorf("Decide(%d) = %+v, want %+v", k, got, want[k])
					return
				}
			}
		})
	}
	wg.Wait()
}
