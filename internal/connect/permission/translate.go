// Package permission reads what people decided in clients about the tools of MCP
// servers, and makes rules of Ken of it.
package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ken/internal/glob"
	"ken/internal/untrusted"
)

// A Decision is what a client's user decided there about tools of MCP servers:
// one line of its settings.
type Decision struct {
	effect effect
	tool   string // the tools, named as the client names them, with * for any part
	said   string // as the file has it, for people
	where  string // the setting and its file

	folder  string   // it counts in this folder only; empty is everywhere
	entry   string   // the server whose entry says it; tool then has no server in it
	classes []string // of what tools do; empty is all

	// group is not empty where the last line that matches counts, as it does
	// among all lines of one group. Elsewhere the strictest counts.
	group string

	why string // what keeps Ken from having a rule for it; empty: nothing
}

// An effect is what becomes of a call. The strictest is the largest.
type effect int

const (
	undecided effect = iota // the client's default, and so Ken's
	allowed
	asked
	denied
)

func (e effect) String() string { return [...]string{"", "allow", "ask", "deny"}[e] }

// A Rule is a decision of a client's user as a rule of Ken for this client. It is
// written to the file that package config calls client-rules.json.
type Rule struct {
	ID           string   `json:"id"`
	Effect       string   `json:"effect"`
	Agents       []string `json:"agents"`
	Capabilities []string `json:"capabilities"`
	Except       []string `json:"except,omitempty"`
	Effects      []string `json:"effects,omitempty"`
	Destructive  bool     `json:"destructive,omitempty"`
	Folder       string   `json:"folder,omitempty"`
	Entry        string   `json:"entry,omitempty"` // the server whose entry said it
	Reason       string   `json:"reason"`
}

// String returns the rule in one line, for people.
func (r Rule) String() string {
	line := r.Effect + " " + strings.Join(r.Capabilities, ", ")
	if len(r.Except) > 0 {
		line += " except " + strings.Join(r.Except, ", ")
	}
	if len(r.Effects) > 0 {
		line += " if the call is one of " + strings.Join(r.Effects, ", ")
	}
	if r.Folder != "" {
		line += " in " + r.Folder
	}
	return line + "    " + r.Reason
}

// A naming is how a client names the tools of servers.
type naming struct {
	// prefixes returns what stands before the name of a tool of a server.
	prefixes func(server string) []string

	// whole reports whether the name of a server with nothing behind it stands for
	// all its tools; sep is what a server's prefix then ends with.
	whole bool
	sep   string

	// bare reports whether a name that begins with no server's is that of a tool of
	// any server.
	bare bool

	// any, where it is not nil, writes a name of a tool as a pattern of ids of Ken,
	// for servers that this client does not have and Ken has from elsewhere.
	any func(tool string) string
}

// doubleUnderscore is how Claude Code and Qwen Code name tools.
var doubleUnderscore = naming{
	prefixes: func(server string) []string { return []string{"mcp__" + plainLetters(server) + "__"} },
	whole:    true, sep: "__",
	any: func(tool string) string {
		rest, ok := strings.CutPrefix(tool, "mcp__")
		switch {
		case !ok && strings.HasPrefix(tool, "*"):
			return "mcp:*"
		case !ok:
			return ""
		}
		server, name, found := strings.Cut(rest, "__")
		if !found && strings.Contains(server, "*") {
			return "mcp:" + server
		}
		return "mcp:" + server + "/" + cmp.Or(name, "*")
	},
}

// plainLetters replaces what clients do not keep in the names of tools.
func plainLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if bareLetter(r) {
			return r
		}
		return '_'
	}, name)
}

func bareLetter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// tools returns which tools of a server a pattern matches, each as a pattern.
func (n naming) tools(pattern, server string) []string {
	var out []string
	for _, prefix := range n.prefixes(server) {
		out = append(out, residuals(pattern, prefix)...)
		if n.whole && pattern+n.sep == prefix {
			out = append(out, "*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// residuals returns what a pattern leaves to match behind a prefix.
func residuals(pattern, prefix string) []string {
	at := map[int]bool{}
	var reach func(i int)
	reach = func(i int) {
		at[i] = true
		if i < len(pattern) && pattern[i] == '*' {
			reach(i + 1)
		}
	}
	reach(0)
	for j := range len(prefix) {
		was := at
		at = map[int]bool{}
		for i := range was {
			switch {
			case i == len(pattern):
			case pattern[i] == '*':
				reach(i)
			case pattern[i] == prefix[j]:
				reach(i + 1)
			}
		}
	}
	var out []string
	for i := range at {
		// Where a star is reached the rest behind it is in it already.
		if rest := pattern[i:]; rest != "" && !(i > 0 && pattern[i-1] == '*' && at[i-1]) {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

// Refused is a decision that Ken has no rule for.
type Refused struct {
	Said  string `json:"said"`
	Where string `json:"where"`
	Why   string `json:"why"`
}

func (r Refused) String() string { return r.Said + " (" + r.Where + "): " + r.Why }

// A Server is an MCP server that Ken has from the client.
type Server struct {
	Name   string // in Ken
	Client string // in the client
}

// A Client is whose decisions are translated, and what Ken has of it.
type Client struct {
	Name, Title string
	Servers     []Server // that Ken has once the client is connected
	Moved       []string // the client's names of those that move now
	Kept        []string // the client's names of those that stay in it
	HTTP        bool     // it asks over HTTP, so Ken does not know its folder
	Old         []Rule   // its rules of before
}

// A Translation is what the decisions of a client's user come to.
type Translation struct {
	Rules   []Rule
	Refused []Refused // decisions that Ken has no rule for
	Notes   []string  // what a person should know
}

// Translate turns decisions into rules. Of the rules of before, what the entries of
// servers said that moved long ago is kept: the client has those no more.
func Translate(c Client, decisions []Decision) Translation {
	t := &ruleMaker{client: c, naming: namings[c.Name]}
	for i, d := range decisions {
		if c.HTTP && d.folder != "" {
			if d.effect == allowed {
				t.note("%s (%s): a client that asks over HTTP does not say its folder; Ken asks by its own rules", untrusted.Line(d.said, 120), d.where)
				continue
			}
			d.folder = "" // ken serve has one folder for all
		}
		t.decide(d, decisions[i+1:])
	}
	for _, r := range c.Old {
		if r.Entry != "" && !slices.Contains(c.Moved, r.Entry) && slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Client == r.Entry }) {
			r.ID = t.id(r.Effect)
			t.out.Rules = append(t.out.Rules, r)
		}
	}
	return t.out
}

// A ruleMaker makes the rules of one client.
type ruleMaker struct {
	client Client
	naming naming
	out    Translation
}

func (t *ruleMaker) note(format string, args ...any) {
	t.out.Notes = append(t.out.Notes, fmt.Sprintf(format, args...))
}

func (t *ruleMaker) id(effect string) string {
	n := 1
	for _, r := range t.out.Rules {
		if r.Effect == effect {
			n++
		}
	}
	return fmt.Sprintf("%s.%s-%d", t.client.Name, effect, n)
}

// decide adds the rule for a decision. Later are those that come after it.
func (t *ruleMaker) decide(d Decision, later []Decision) {
	ids := t.ids(d)
	if d.effect > allowed && d.entry == "" && t.naming.any != nil {
		// Of servers that Ken has from elsewhere, now or later.
		id := t.naming.any(d.tool)
		server, _, _ := strings.Cut(id, "/")
		if id != "" && (strings.Contains(server, "*") || len(ids) == 0 && !t.stays(d)) {
			ids = append(ids, id)
			slices.Sort(ids)
		}
	}
	switch {
	case len(ids) == 0 || d.effect == undecided:
		return // about tools of the client itself, or of servers that stay in it
	case d.why != "" && d.effect > allowed:
		t.out.Refused = append(t.out.Refused, Refused{untrusted.Line(d.said, 120), d.where, d.why})
		return
	case d.why != "":
		t.note("%s (%s): %s; Ken asks by its own rules", untrusted.Line(d.said, 120), d.where, d.why)
		return
	}
	r := Rule{
		ID: t.id(d.effect.String()), Effect: d.effect.String(), Agents: []string{t.client.Name}, Capabilities: ids, Effects: d.classes,
		Folder: d.folder, Entry: d.entry, Reason: t.reason(d),
	}
	for _, l := range later {
		if d.group != "" && l.group == d.group && l.effect < d.effect {
			for _, id := range t.ids(l) {
				if slices.ContainsFunc(ids, func(of string) bool { return overlap(of, id) }) {
					r.Except = append(r.Except, id)
				}
			}
		}
	}
	slices.Sort(r.Except)
	r.Except = slices.Compact(r.Except)
	if slices.Equal(r.Except, r.Capabilities) {
		return // a later line has taken its place
	}
	r.Destructive = d.effect == allowed && !slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, "*") })
	t.out.Rules = append(t.out.Rules, r)
}

// overlap reports whether two patterns may match the same name. Of two with a star
// it is not worked out.
func overlap(a, b string) bool {
	star := func(s string) bool { return strings.Contains(s, "*") }
	switch {
	case star(a) && star(b):
		return true
	case star(a):
		return glob.Name(a, b, false)
	}
	return glob.Name(b, a, false)
}

func (t *ruleMaker) reason(d Decision) string {
	verb := map[effect]string{allowed: "allows", asked: "asks before", denied: "denies"}[d.effect]
	return fmt.Sprintf("%s %s %s (%s)", t.client.Title, verb, untrusted.Line(d.said, 120), d.where)
}

// ids returns the ids of the tools that a decision is about, with * for any part.
func (t *ruleMaker) ids(d Decision) []string {
	var out []string
	for _, s := range t.client.Servers {
		name := s.Client
		var tools []string
		switch {
		case d.entry == "" && t.naming.prefixes != nil:
			tools = t.naming.tools(d.tool, name)
		case d.entry == name:
			tools = []string{d.tool}
		}
		for _, tool := range tools {
			out = append(out, "mcp:"+s.Name+"/"+tool)
		}
	}
	if len(out) == 0 && t.naming.bare && d.entry == "" && !strings.HasPrefix(d.tool, "mcp_") {
		for _, s := range t.client.Servers {
			out = append(out, "mcp:"+s.Name+"/"+d.tool)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stays reports whether a decision is about a server that stays in the client.
func (t *ruleMaker) stays(d Decision) bool {
	for _, name := range t.client.Kept {
		if len(t.naming.tools(d.tool, name)) > 0 {
			return true
		}
	}
	return false
}
