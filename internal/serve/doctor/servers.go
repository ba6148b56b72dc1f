package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/untrusted"
)

// Servers is what the doctor knows about MCP servers. Texts in it may be from
// the servers themselves: the checks hold them in single lines.
type Servers struct {
	List     []Server             // each was started once
	Problems []capability.Problem // of the files that name them
	Running  []Process            // that use servers now
	Daemon   Daemon
}

// A Server is one definition, and what came of starting it.
type Server struct {
	Name     string
	Origin   string // the file that defines it, with the line
	Kind     string // stdio, http or sse
	Disabled bool

	Protocol                             string
	Tools, Prompts, Resources, Templates int
	Waiting                              int // tools that were not accepted

	Profile string   // imported or confined; empty for one at an address
	Held    string   // by which profile of the sandbox
	Open    []string // what it is not held from, "layer: why"

	Err, Fix string // why it does not work, and what to do about it, with the place of its definition

	Noise    int // lines on its output that are no messages
	Sample   string
	Problems []capability.Problem // of what it lists
	Long     []string             // names of tools that clients see shortened
	Large    []string             // tools with schemas that fill a model's room, with their sizes

	Narrower Narrower
}

// Narrower is how a server that runs as before could be held closer.
type Narrower struct {
	Line string // to write into the definition; empty: none is known
	Note string // what to know about it, or why there is none
}

// A Process is one of Ken's that uses servers.
type Process struct {
	PID     int
	What    string // its command
	Since   time.Time
	Servers []Troubled
}

// A Troubled is how a server stands in a process, and the last that went wrong
// with it there.
type Troubled struct {
	Name     string
	Down     bool // it does not work now
	Runs     int  // back ends
	Restarts int
	Err      string
	At       time.Time // of Err
	Noise    int
	Sample   string
}

// A Daemon is the process behind the clients' windows.
type Daemon struct {
	Unsupported bool // there is none on this system
	PID         int  // 0: none runs
	Clients     int
	Version     string
	Other       bool // it is another build than this program
	Err         error
}

const (
	textRunes   = 600 // of what went wrong with a server
	sampleRunes = 160 // of what it printed
	mostSaid    = 5   // problems told one by one
)

func servers(s Servers) []Check {
	var checks []Check
	for _, p := range s.Problems {
		c := Check{Name: "servers", Grade: Warn, Message: untrusted.Line(strings.TrimPrefix(p.Origin.String()+": "+p.Message, ": "), textRunes), Fix: p.Fix}
		if p.Severity == capability.Grave {
			c.Grade = Bad
		}
		if c.Fix == "" {
			c.Fix = "fix " + p.Origin.String()
		}
		checks = append(checks, c)
	}
	known := map[string]Server{}
	for _, one := range s.List {
		known[one.Name] = one
		checks = append(checks, server(one))
		if c, ok := narrower(one); ok {
			checks = append(checks, c)
		}
	}
	for _, p := range s.Running {
		checks = append(checks, process(p, s.Daemon, known)...)
	}
	return append(checks, daemon(s.Daemon, s.Running))
}

// server makes the check of one server: its first line says how it is, each
// further one what could be better.
func server(s Server) Check {
	c := Check{Name: "mcp:" + untrusted.Line(s.Name, 80), Grade: Good}
	switch {
	case s.Disabled:
		c.Grade, c.Message, c.Fix = Warn, "it is switched off", "take disabled out of "+DefinedAt(s.Name, s.Origin)
		return c
	case s.Err != "":
		c.Grade, c.Message, c.Fix = Bad, "it does not work: "+untrusted.Line(s.Err, textRunes), cmp.Or(s.Fix, "look at "+DefinedAt(s.Name, s.Origin))
		return c
	}
	lines, fixes := []string{offers(s) + "; " + holds(s)}, []string{}
	say := func(line, fix string) {
		c.Grade = Warn
		lines = append(lines, line)
		if fix != "" {
			fixes = append(fixes, fix)
		}
	}
	if s.Waiting > 0 {
		say(count(s.Waiting, "tool")+" in quarantine: new, or not what was accepted", "ken extension review mcp:"+s.Name)
	}
	if s.Noise > 0 {
		say(noise(s.Noise, s.Sample), "its messages should go to standard error; tell its author")
	}
	for _, p := range s.Problems[:min(len(s.Problems), mostSaid)] {
		say(untrusted.Line(p.Message, textRunes), p.Fix)
	}
	if more := len(s.Problems) - mostSaid; more > 0 {
		say(count(more, "further problem")+" with what it lists", "ken catalog lint lists them all")
	}
	if len(s.Long) > 0 {
		say(count(len(s.Long), "name")+" of tools that clients see shortened: "+untrusted.Line(some(s.Long, 3), textRunes), "tell its author")
	}
	if len(s.Large) > 0 {
		say("large schemas: "+untrusted.Line(some(s.Large, 3), textRunes), "leave tools out with exclude in "+DefinedAt(s.Name, s.Origin))
	}
	c.Message, c.Fix = strings.Join(lines, "\n"), strings.Join(unique(fixes), "; ")
	if c.Grade == Warn && c.Fix == "" {
		c.Fix = "see " + DefinedAt(s.Name, s.Origin)
	}
	return c
}

func offers(s Server) string {
	parts := []string{count(s.Tools, "tool")}
	for _, o := range []struct {
		n    int
		word string
	}{{s.Prompts, "prompt"}, {s.Resources, "resource"}, {s.Templates, "template"}} {
		if o.n > 0 {
			parts = append(parts, count(o.n, o.word))
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(" over %s, protocol %s", s.Kind, untrusted.Line(s.Protocol, 40))
}

func noise(n int, sample string) string {
	return "noise on its output, " + count(n, "line") + ": " + untrusted.Line(sample, sampleRunes)
}

// holds returns how a server is confined, and what is left open.
func holds(s Server) string {
	if s.Profile == "" {
		return "it runs elsewhere"
	}
	text := "sandbox profile " + s.Profile
	if s.Held != "" {
		text += " (" + s.Held + ")"
	}
	var layers []string
	for _, m := range s.Open {
		layer, _, _ := strings.Cut(m, ":")
		layers = append(layers, untrusted.Line(layer, 40))
	}
	if len(layers) > 0 {
		text += ", which leaves open: " + strings.Join(unique(layers), ", ")
	}
	return text
}

// narrower proposes a tighter sandbox profile for a server.
func narrower(s Server) (Check, bool) {
	n := s.Narrower
	if n == (Narrower{}) {
		return Check{}, false
	}
	c := Check{Name: "mcp:" + untrusted.Line(s.Name, 80), Grade: Good, Message: "not confined: it has your files and network"}
	if n.Line != "" {
		c.Message += "; it can be confined"
		c.Fix = "write into " + DefinedAt(s.Name, s.Origin) + ": " + n.Line
	}
	if n.Note != "" {
		c.Message += "; " + untrusted.Line(n.Note, 2*textRunes)
	}
	return c, true
}

// DefinedAt names the place of a server's definition.
func DefinedAt(name, origin string) string {
	if origin == "" {
		return name
	}
	return name + " in " + origin
}

// process tells of the servers that went wrong in a process that runs, but not
// again what was found when they were started just now.
func process(p Process, d Daemon, known map[string]Server) []Check {
	who := fmt.Sprintf("%s, process %d", untrusted.Line(p.What, 80), p.PID)
	if p.PID == d.PID {
		who = fmt.Sprintf("the daemon, process %d", p.PID)
	}
	var checks []Check
	runs, well := 0, len(p.Servers)
	for _, t := range p.Servers {
		runs += t.Runs
		c, bad := troubled(t, who, known[t.Name].Origin)
		if !bad {
			continue
		}
		well--
		if t.Err != known[t.Name].Err || t.Restarts > 0 || t.Noise > 0 {
			checks = append(checks, c)
		}
	}
	message := fmt.Sprintf("in %s since %s: %s, %s; %d without errors", who, clock(p.Since), count(len(p.Servers), "server"), count(runs, "back end"), well)
	return append([]Check{{Name: "servers", Grade: Good, Message: message}}, checks...)
}

func troubled(t Troubled, who, origin string) (Check, bool) {
	c := Check{Name: "mcp:" + untrusted.Line(t.Name, 80), Grade: Warn}
	var parts []string
	if t.Err != "" {
		parts = append(parts, clock(t.At)+": "+untrusted.Line(t.Err, textRunes))
	}
	if t.Restarts > 0 {
		parts = append(parts, "it was started again "+count(t.Restarts, "time"))
	}
	if t.Noise > 0 {
		parts = append(parts, noise(t.Noise, t.Sample))
	}
	if len(parts) == 0 {
		return c, false
	}
	c.Fix = "look at its own log; it is " + DefinedAt(t.Name, origin)
	if t.Down {
		c.Grade = Bad
		parts = append(parts, "it does not run now; the next call starts it")
	}
	c.Message = "in " + who + ": " + strings.Join(parts, "; ")
	return c, true
}

func daemon(d Daemon, running []Process) Check {
	c := Check{Name: "daemon", Grade: Good}
	switch {
	case d.Unsupported:
		c.Message = "there is none on this system; each client has its own servers"
	case d.Err != nil:
		c.Grade, c.Message, c.Fix = Bad, untrusted.Line(d.Err.Error(), textRunes), "ken mcp --standalone works without it"
	case d.PID == 0:
		c.Message = "none runs; the first ken mcp starts it"
	default:
		c.Message = fmt.Sprintf("process %d, version %s, %s", d.PID, untrusted.Line(d.Version, 80), count(d.Clients, "client"))
		for _, p := range running {
			if p.PID == d.PID && !p.Since.IsZero() {
				c.Message += ", since " + clock(p.Since)
				break
			}
		}
		if d.Other {
			c.Grade = Warn
			c.Message += "; it is another build than this program"
			c.Fix = fmt.Sprintf("a newer ken mcp takes its place; else end process %d", d.PID)
		}
	}
	return c
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// unique keeps the first of each.
func unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
