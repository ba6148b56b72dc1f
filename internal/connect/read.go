package connect

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/spelling"
	"ken/internal/untrusted"
)

// goodName is the form that names of servers have in Ken.
var goodName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`) })

// ReadServers reads a document that lists servers under "mcpServers", as
// clients keep them, or under "servers". It may have comments. An entry that
// makes no sense is left out, with a problem that names its line; a key that
// means nothing to Ken is a warning. Values are not repeated in problems.
// The problems' Origin has a line and no path; the caller knows the path.
func ReadServers(data []byte) ([]Server, []capability.Problem) {
	fail := func(line int, message, fix string) []capability.Problem {
		return []capability.Problem{{Code: "mcp-servers", Origin: capability.Origin{Line: line}, Message: message, Fix: fix}}
	}
	if len(data) > Largest {
		return nil, fail(0, fmt.Sprintf("the document has more than %d bytes", Largest), "give a smaller one")
	}
	root, err := parseJSON(data)
	if err != nil {
		return nil, fail(err.(*syntaxError).line, "this is not JSON: "+err.(*syntaxError).what, "fix the line")
	}
	if root == nil {
		return nil, nil
	}
	if root.kind != object {
		return nil, fail(lineAt(data, root.start), "the document is not an object in braces", `write {"mcpServers": {…}}`)
	}
	list := root.get("mcpServers")
	if list == nil {
		list = root.get("servers")
	}
	switch {
	case list == nil && len(root.members) == 0:
		return nil, nil
	case list == nil:
		return nil, fail(1, `there is no "mcpServers" in it`, `write {"mcpServers": {…}}`)
	case list.kind != object:
		return nil, fail(lineAt(data, list.start), `"mcpServers" is not an object in braces`, `write {"mcpServers": {…}}`)
	}
	r := &reader{data: data}
	for i, m := range list.members {
		if slices.ContainsFunc(list.members[i+1:], func(o member) bool { return o.name == m.name }) {
			r.say(capability.Grave, m, m.start, "it is there again further down, and that one counts", "delete or rename one")
			continue
		}
		r.entry(m)
	}
	return r.servers, r.problems
}

type reader struct {
	data     []byte
	servers  []Server
	problems []capability.Problem
}

func (r *reader) say(grave capability.Severity, m member, at int, message, fix string) {
	name := untrusted.Line(m.name, 80)
	r.problems = append(r.problems, capability.Problem{
		Severity: grave, Code: "mcp-server", Subject: capability.ID("mcp:" + name),
		Origin: capability.Origin{Line: lineAt(r.data, at)}, Message: "server " + name + ": " + message, Fix: fix,
	})
}

func (r *reader) entry(m member) {
	f, ok := fieldsOf(m.value.plain())
	if !ok {
		r.say(capability.Grave, m, m.start, "it is not an object in braces", `write {"command": …} or {"url": …}`)
		return
	}
	place := func(key string) int {
		for _, inner := range m.value.members {
			if inner.name == key {
				return inner.start
			}
		}
		return m.start
	}
	s, why := standard(f)
	s.Name, s.Line = m.name, lineAt(r.data, m.start)
	for i, wrong := range f.wrong {
		r.say(capability.Grave, m, place(f.keys[i]), wrong, "fix the value")
	}
	switch {
	case len(f.wrong) > 0:
		return
	case why != "":
		r.say(capability.Grave, m, m.start, why, "fix the entry")
		return
	case !goodName().MatchString(m.name):
		r.say(capability.Grave, m, m.start, "its name is not made of up to 64 letters, digits, _, - and .", "rename it")
		return
	}
	for _, key := range f.rest() {
		r.say(capability.Warning, m, place(key), fmt.Sprintf("the key %q means nothing to Ken", untrusted.Line(key, 40)), "delete it, or see docs/clients.md for what Ken reads")
	}
	r.servers = append(r.servers, s)
}

// known are keys of clients that say nothing about how a server is reached:
// titles, and what a client may do without asking. Ken's own rules decide that.
var known = []string{"description", "name", "icon", "version", "gallery", "trust", "alwaysAllow", "autoApprove", "alwaysLoad", "source", "remote"}

// standard reads an entry of the form that most clients share. Why is what
// makes it no server that Ken can stand in front of.
func standard(f *fields) (s Server, why string) {
	s.Command = f.text("command")
	s.Args, s.Env, s.Cwd = f.texts("args"), f.table("env"), f.text("cwd")
	s.Headers = f.table("headers")
	kind := cmp.Or(f.text("type"), f.text("transport"))
	plain, streamed := cmp.Or(f.text("url"), f.text("serverUrl")), f.text("httpUrl")
	s.URL = cmp.Or(streamed, plain)
	if disabled, _ := f.flag("disabled"); disabled {
		s.Disabled = true
	}
	if enabled, there := f.flag("enabled"); there && !enabled {
		s.Disabled = true
	}
	s.Timeout = f.duration("timeout", time.Millisecond)
	s.StartTimeout = f.duration("startTimeout", time.Millisecond)
	s.Include, s.Exclude = f.texts("includeTools"), f.texts("excludeTools")
	for _, key := range known {
		f.take(key)
	}
	if why := s.oauth(f); why != "" {
		return s, why
	}
	s.extra(f)
	why = s.reach(kind)
	if rest := f.rest(); why == noTarget && len(rest) > 0 {
		why += "; unknown key " + untrusted.Line(strings.Join(rest, ", "), 80)
		if near := spelling.Nearest(rest[0], []string{"command", "url"}); near != "" {
			why += "; did you mean " + near + "?"
		}
	}
	return s, why
}

// noTarget says that an entry names nothing to start or connect to.
const noTarget = "it has neither a command nor an address"

// reach settles how the server is spoken to.
func (s *Server) reach(kind string) (why string) {
	switch {
	case s.Command != "" && s.URL != "":
		return "it has both a command and an address"
	case s.Command == "" && s.URL == "":
		if kind != "" && kind != "stdio" && kind != "http" && kind != "sse" {
			return fmt.Sprintf("its type %q is inside the client", untrusted.Line(kind, 40))
		}
		return noTarget
	}
	switch strings.ToLower(kind) {
	case "", "stdio", "local":
		if s.URL != "" && kind == "stdio" {
			return "its type is stdio, and it has an address"
		}
	case "http", "streamable-http", "streamable_http", "streamablehttp", "remote":
		s.Transport = "http"
	case "sse":
		s.Transport = "sse"
	default:
		return fmt.Sprintf("Ken does not speak its type %q", untrusted.Line(kind, 40))
	}
	if s.Command != "" {
		if s.Transport != "" {
			return "it has a command, and its type is that of an address"
		}
		return ""
	}
	s.Transport = cmp.Or(s.Transport, "http")
	if strings.HasPrefix(s.URL, "${") || strings.HasPrefix(s.URL, "$") {
		return "" // known when it starts
	}
	if u, err := url.Parse(s.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "its address is not one of http or https"
	}
	return ""
}

// oauth reads how to sign in. A client that is known to the server by a secret
// is not taken over: the secret belongs to the client.
func (s *Server) oauth(f *fields) (why string) {
	v := f.take("oauth")
	if v == nil || v == false {
		return ""
	}
	o, ok := fieldsOf(v)
	if !ok {
		f.bad("oauth", "an object in braces")
		return ""
	}
	s.ClientID = cmp.Or(o.text("clientId"), o.text("client_id"))
	if scope := o.text("scope"); scope != "" {
		s.Scopes = strings.Fields(scope)
	} else {
		s.Scopes = o.texts("scopes")
	}
	o.take("enabled")
	if len(o.wrong) > 0 {
		f.bad("oauth", "what its keys want ("+o.what()+")")
	}
	if rest := o.rest(); len(rest) > 0 {
		return fmt.Sprintf("it signs in by settings that Ken does not take over (oauth: %s)", untrusted.Line(strings.Join(rest, ", "), 80))
	}
	return ""
}

// extra reads x-ken.
func (s *Server) extra(f *fields) {
	v := f.take("x-ken")
	if v == nil {
		return
	}
	x, ok := fieldsOf(v)
	if !ok {
		f.bad("x-ken", "an object in braces")
		return
	}
	if from, one := x.m["from"].(string); one {
		x.take("from")
		s.Ken.From = []string{from}
	} else {
		s.Ken.From = x.texts("from")
	}
	s.Ken.Name, s.Ken.Project = x.text("name"), x.text("project")
	s.Ken.Scope, s.Ken.Profile = x.text("scope"), x.text("profile")
	s.Ken.Read, s.Ken.Write, s.Ken.Hosts = x.texts("read"), x.texts("write"), x.texts("hosts")
	s.Ken.Concurrent = x.count("concurrent")
	for _, key := range x.rest() {
		x.bad(key, "one of from, name, project, scope, profile, read, write, hosts and concurrent, or not there")
	}
	if len(x.wrong) > 0 {
		f.bad("x-ken", "what its keys want ("+x.what()+")")
	}
}
