package connect

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"
)

// A Server is one MCP server as a client has it. Exactly one of Command and URL
// is set. Values may have ${NAME} and ${secret:NAME} in them.
type Server struct {
	Name string

	Command string
	Args    []string
	Env     map[string]string
	Cwd     string

	URL       string
	Transport string // of URL: "http" or "sse"; empty is http
	Headers   map[string]string
	ClientID  string   // of OAuth, where the server knows its client already
	Scopes    []string // to ask for at OAuth

	Timeout      time.Duration // of a call; zero is the default
	StartTimeout time.Duration // zero is the default
	Include      []string      // the only tools that are taken, where there are any
	Exclude      []string      // tools that are not taken
	Disabled     bool

	Ken Extra // what only Ken reads, "x-ken"

	Line int // of the file that has it; 0 when unknown
}

// Extra is the part of an entry that only Ken reads.
type Extra struct {
	From    []string // the clients that had it
	Name    string   // what they called it, where Ken calls it otherwise
	Project string   // the folder it was for; empty is everywhere

	Scope              string // user, session or shared
	Profile            string // of the sandbox
	Read, Write, Hosts []string
	Concurrent         int
}

// same reports whether two servers are the same but for their names and for
// where they are from.
func (s Server) same(t Server) bool { return reflect.DeepEqual(s.bare(), t.bare()) }

func (s Server) bare() Server {
	s.Name, s.Line = "", 0
	s.Ken = Extra{Project: s.Ken.Project}
	if s.URL != "" {
		s.Transport = cmp.Or(s.Transport, "http")
	}
	// Nothing and an empty list are the same.
	for _, list := range []*[]string{&s.Args, &s.Scopes, &s.Include, &s.Exclude} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	for _, m := range []*map[string]string{&s.Env, &s.Headers} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	return s
}

// pairs returns the entry of the server in the form that clients share.
func (s Server) pairs() pairs {
	var out pairs
	add := func(name string, v any) { out = append(out, pair{name, v}) }
	if s.Command != "" {
		add("command", s.Command)
		if len(s.Args) > 0 {
			add("args", s.Args)
		}
		if len(s.Env) > 0 {
			add("env", sorted(s.Env))
		}
		if s.Cwd != "" {
			add("cwd", s.Cwd)
		}
	} else {
		add("type", cmp.Or(s.Transport, "http"))
		add("url", s.URL)
		if len(s.Headers) > 0 {
			add("headers", sorted(s.Headers))
		}
		if s.ClientID != "" || len(s.Scopes) > 0 {
			var oauth pairs
			if s.ClientID != "" {
				oauth = append(oauth, pair{"clientId", s.ClientID})
			}
			if len(s.Scopes) > 0 {
				oauth = append(oauth, pair{"scopes", s.Scopes})
			}
			add("oauth", oauth)
		}
	}
	if s.Timeout > 0 {
		add("timeout", int(s.Timeout.Milliseconds()))
	}
	if s.StartTimeout > 0 {
		add("startTimeout", int(s.StartTimeout.Milliseconds()))
	}
	if len(s.Include) > 0 {
		add("includeTools", s.Include)
	}
	if len(s.Exclude) > 0 {
		add("excludeTools", s.Exclude)
	}
	if s.Disabled {
		add("disabled", true)
	}
	if extra := s.Ken.pairs(); len(extra) > 0 {
		add("x-ken", extra)
	}
	return out
}

func (e Extra) pairs() pairs {
	var out pairs
	switch len(e.From) {
	case 0:
	case 1:
		out = append(out, pair{"from", e.From[0]})
	default:
		out = append(out, pair{"from", e.From})
	}
	for _, p := range []pair{{"name", e.Name}, {"project", e.Project}, {"scope", e.Scope}, {"profile", e.Profile}} {
		if p.value != "" {
			out = append(out, p)
		}
	}
	for _, l := range []pair{{"read", e.Read}, {"write", e.Write}, {"hosts", e.Hosts}} {
		if len(l.value.([]string)) > 0 {
			out = append(out, l)
		}
	}
	if e.Concurrent > 0 {
		out = append(out, pair{"concurrent", e.Concurrent})
	}
	return out
}

func sorted(m map[string]string) pairs {
	out := pairs{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, pair{name, m[name]})
	}
	return out
}
