package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"ken/capability"
	hosts "ken/internal/address"
	"ken/internal/coldsort"
	"ken/internal/yamldoc"
)

// MCP says which servers stand behind Ken, and how Ken stands before clients.
type MCP struct {
	// Servers are started and asked by Ken, by name. Default none.
	Servers []Server

	// Import names more files that list servers, in the form that clients use
	// ("mcpServers"). Default none; mcp.json in the user's place is read in any
	// case.
	Import []string

	// Surface says what a client is shown. Default auto; the zero value means
	// the same.
	Surface Surface

	// Surfaces are those of single clients, by their name in ken connect or by
	// the beginning of the name that they give themselves.
	Surfaces map[string]string

	// Pinned are ids of tools that are always on the short menu. Default none.
	Pinned []string

	// New and Changed say what becomes of a tool that a server did not have, or
	// had otherwise, when its tools were accepted. Default quarantine; the zero
	// value means the same.
	New, Changed PinRule

	// TrustHints are names of servers, wherever they are defined, whose hints
	// about their tools' effects are believed. Default none.
	TrustHints []string

	// Idle is after how long without calls a server is stopped. Default 10m;
	// zero is never.
	Idle time.Duration

	// Instructions is how many tokens of the servers' own instructions a client
	// is given when it connects.
	Instructions int

	// Registry is the MCP registry in which ken add looks names up: an address,
	// or a file of entries.
	Registry string

	// MaxTools is how many tools are read of one server's list; the rest is cut
	// and reported. It holds for prompts, resources and templates too. Default
	// 10000.
	MaxTools int
}

// A Surface is a way to show capabilities to an MCP client.
type Surface string

const (
	SurfaceAuto   Surface = "auto"   // by what is known of the client
	SurfaceDirect Surface = "direct" // every tool, natively
	SurfaceBridge Surface = "bridge" // a few tools that find and call the others
)

// A PinRule says what becomes of a tool that is not what was accepted.
type PinRule string

const (
	PinQuarantine PinRule = "quarantine"
	PinAccept     PinRule = "accept"
)

// A Server is one MCP server behind Ken. Exactly one of Command and URL is set.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string // ${NAME} and ${secret:NAME} stand for values
	Cwd     string            // absolute; empty is the user's home

	URL       string
	Transport Transport // of URL; empty is http
	Headers   map[string]string
	ClientID  string            // of OAuth, where the server knows Ken already
	Scopes    []string          // to ask for at OAuth
	OAuth     map[string]string // how to get a token without a person

	Scope   ServerScope   // empty is user
	Profile ServerProfile // of Command; empty is imported

	// Read, Write and Hosts are what a confined server may see, change and
	// reach.
	Read, Write, Hosts []string

	Timeout      time.Duration // of a call; zero is limits.timeout
	StartTimeout time.Duration // zero is a minute
	Concurrent   int           // calls at once; zero is 16

	// Include, where it is not empty, names the only tools that are taken;
	// Exclude those that are not. * stands for anything.
	Include, Exclude []string

	Disabled bool

	Origin capability.Origin // the file and the line that say so
}

// A Transport is a way to speak to a server at an address.
type Transport string

const (
	TransportHTTP Transport = "http" // streamable HTTP
	TransportSSE  Transport = "sse"
)

// A ServerScope says who shares a server's process or session.
type ServerScope string

const (
	ScopeUser    ServerScope = "user"    // all sessions of one person
	ScopeSession ServerScope = "session" // shared by no other session
	ScopeShared  ServerScope = "shared"  // everybody
)

// A ServerProfile says what holds a server's process.
type ServerProfile string

const (
	ProfileImported ServerProfile = "imported" // files and network as before
	ProfileConfined ServerProfile = "confined" // what Read, Write and Hosts say
)

const serversKey = "mcp.servers"

func mcpSettings() []setting[Config] {
	return []setting[Config]{
		entry(serversKey, "MCP servers behind Ken by name, as in {files: {command: npx, args: [-y, server-files, /data]}, wiki: {url: https://…}}.",
			func(c *Config) *[]Server { return &c.MCP.Servers }, servers()),
		entry("mcp.import", "Additional files that list servers under mcpServers, as clients keep them; mcp.json beside ken.yaml is always read.",
			func(c *Config) *[]string { return &c.MCP.Import }, folders()),
		entry("mcp.surface", "What MCP clients are shown: direct (every tool), bridge (tools that find and call the others) or auto (by the client).",
			func(c *Config) *Surface { return &c.MCP.Surface }, word(SurfaceAuto, SurfaceDirect, SurfaceBridge).fixed()),
		entry("mcp.surfaces", "The same for single clients, by their name in ken connect or the beginning of the name that they give themselves, as in {codex: bridge}.",
			func(c *Config) *map[string]string { return &c.MCP.Surfaces }, wordMap("{codex: bridge}", SurfaceAuto, SurfaceDirect, SurfaceBridge).fixed()),
		entry("mcp.pinned", "Tool ids that are always in the bridge menu.",
			func(c *Config) *[]string { return &c.MCP.Pinned }, ids("ids", subset, nil)),
		entry("mcp.new", "A server's new tool: quarantine (until a person accepts it) or accept.",
			func(c *Config) *PinRule { return &c.MCP.New }, word(PinQuarantine, PinAccept)),
		entry("mcp.changed", "A tool that differs from what was accepted: quarantine or accept.",
			func(c *Config) *PinRule { return &c.MCP.Changed }, word(PinQuarantine, PinAccept)),
		entry("mcp.trustHints", "Names of servers whose hints are believed, as in readOnlyHint: a tool that only reads needs no approval. A hint that the tool's name or arguments contradict is not believed.",
			func(c *Config) *[]string { return &c.MCP.TrustHints }, texts("names of servers", nil, nil).fixed()),
		entry("mcp.idle", "Stop a server after this time without calls; 0s: never.",
			func(c *Config) *time.Duration { return &c.MCP.Idle }, duration(0, 365*day, noMoreOrEver)),
		entry("mcp.instructions", "Maximum tokens of the servers' own instructions that a client is given when it connects; 0: none.",
			func(c *Config) *int { return &c.MCP.Instructions }, whole(0, 100_000)),
		entry("mcp.registry", "The MCP registry in which ken add looks up the names of servers: an address, or a file of server.json entries.",
			func(c *Config) *string { return &c.MCP.Registry }, text(nil).fixed()),
		entry("mcp.maxTools", "Maximum tools, prompts, resources and templates that are read from one server's lists, at most 100,000; the rest is cut, and ken doctor and ken catalog lint say so.",
			func(c *Config) *int { return &c.MCP.MaxTools }, whole(1, 100_000)),
	}
}

func serverSettings() []setting[Server] {
	return []setting[Server]{
		entry("command", "", func(s *Server) *string { return &s.Command }, text(nil)),
		entry("args", "", func(s *Server) *[]string { return &s.Args }, arguments()),
		entry("env", "", func(s *Server) *map[string]string { return &s.Env }, textMap("{API_KEY: \"${secret:api-key}\"}", checkVariable)),
		entry("cwd", "", func(s *Server) *string { return &s.Cwd }, path()),
		entry("url", "", func(s *Server) *string { return &s.URL }, text(checkServerURL)),
		entry("transport", "", func(s *Server) *Transport { return &s.Transport }, word(TransportHTTP, TransportSSE)),
		entry("headers", "", func(s *Server) *map[string]string { return &s.Headers }, textMap("{X-Team: a}", checkHeader)),
		entry("clientId", "", func(s *Server) *string { return &s.ClientID }, text(nil)),
		entry("scopes", "", func(s *Server) *[]string { return &s.Scopes }, texts("scopes", nil, nil)),
		entry("oauth", "", func(s *Server) *map[string]string { return &s.OAuth }, textMap(`{grant: client-credentials, issuer: https://…, clientSecret: "${secret:wiki}"}`, checkOAuth)),
		entry("scope", "", func(s *Server) *ServerScope { return &s.Scope }, word(ScopeUser, ScopeSession, ScopeShared)),
		entry("profile", "", func(s *Server) *ServerProfile { return &s.Profile }, word(ProfileImported, ProfileConfined)),
		entry("read", "", func(s *Server) *[]string { return &s.Read }, folders()),
		entry("write", "", func(s *Server) *[]string { return &s.Write }, folders()),
		entry("hosts", "", func(s *Server) *[]string { return &s.Hosts }, texts("hosts", nil, nil)),
		entry("timeout", "", func(s *Server) *time.Duration { return &s.Timeout }, duration(time.Millisecond, day, noMore)),
		entry("startTimeout", "", func(s *Server) *time.Duration { return &s.StartTimeout }, duration(time.Millisecond, time.Hour, noMore)),
		entry("concurrent", "", func(s *Server) *int { return &s.Concurrent }, whole(1, 10_000)),
		entry("include", "", func(s *Server) *[]string { return &s.Include }, ids("names of tools", nil, nil)),
		entry("exclude", "", func(s *Server) *[]string { return &s.Exclude }, ids("names of tools", nil, nil)),
		entry("disabled", "", func(s *Server) *bool { return &s.Disabled }, boolean()),
	}
}

// servers maps names to servers. A server is a program that is started or an
// address that is sent data, so a project has no say in them.
func servers() kind[[]Server] {
	return kind[[]Server]{
		empty: true,
		form:  mapForm(tableForm(serverSettings())),
		noWider: func(a, b []Server) bool {
			return slices.EqualFunc(a, b, func(a, b Server) bool {
				a.Origin, b.Origin = capability.Origin{}, capability.Origin{}
				return reflect.DeepEqual(a, b)
			})
		},
		parse: parseServers,
		show: func(list []Server) any {
			out := &yamldoc.Map{}
			for i := range list {
				out.Fields = append(out.Fields, yamldoc.Field{Key: list[i].Name, Value: yamldoc.Value{Any: list[i].show()}})
			}
			return out
		},
	}
}

func (s *Server) show() *yamldoc.Map {
	m := &yamldoc.Map{}
	for _, e := range serverSettings() {
		v := e.show(s)
		switch got := v.(type) {
		case []yamldoc.Value:
			if len(got) == 0 {
				continue
			}
		case *yamldoc.Map:
			if len(got.Fields) == 0 {
				continue
			}
		}
		if v == "" || v == false || v == "0s" || v == 0 || v == int64(0) {
			continue
		}
		m.Fields = append(m.Fields, yamldoc.Field{Key: e.name, Value: yamldoc.Value{Any: v}})
	}
	return m
}

func parseServers(r *reading, at spot, v yamldoc.Value) ([]Server, bool) {
	var out []Server
	ok := named(r, at, v, "server", "{command: npx, args: [-y, server-files]}", func(where spot, name string, about *yamldoc.Map) {
		s := Server{Name: name, Origin: capability.Origin{Path: r.file, Line: where.line}}
		known := len(r.problems)
		decode(r, where.key+".", about, serverSettings(), &s)
		if len(r.problems) == known {
			r.checkServer(where, &s)
		}
		out = append(out, s)
	})
	coldsort.By(out, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return out, ok
}

// ServerName reports whether a name can be that of a server. It is part of the
// ids of all that the server brings.
func ServerName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" && s[0] != '.' && s[0] != '-'
}

func (r *reading) checkServer(at spot, s *Server) {
	wrong := func(fix, format string) { r.fault(at, "bad-server", fix, format, at.key) }
	switch {
	case s.Command == "" && s.URL == "":
		wrong("write a command that starts it, or the url at which it is", "%s says neither command nor url")
	case s.Command != "" && s.URL != "":
		wrong("keep one of them", "%s has both a command and a url")
	case s.URL == "" && (s.Transport != "" || s.Headers != nil || s.ClientID != "" || s.Scopes != nil || s.OAuth != nil):
		wrong("remove transport, headers, clientId, scopes and oauth", "%s is started by a command, and has words about an address")
	case s.URL != "" && (s.Args != nil || s.Env != nil || s.Cwd != "" || s.Profile != "" || s.Read != nil || s.Write != nil || s.Hosts != nil):
		wrong("remove args, env, cwd, profile, read, write and hosts", "%s is at an address, and has words about a program")
	case slices.ContainsFunc([]string{"clientSecret", "clientKey", "token"}, func(key string) bool {
		return s.OAuth[key] != "" && !strings.HasPrefix(s.OAuth[key], "${secret:")
	}):
		wrong("run ken secret set NAME, and write ${secret:NAME}", "%s has a secret in oauth itself, and not the name of a sealed one")
	case s.Profile != ProfileConfined && (s.Read != nil || s.Write != nil || s.Hosts != nil):
		wrong("write profile: confined, or remove read, write and hosts", "%s says what it may see, and is not confined")
	}
}

func checkServerURL(s string) (fix string, err error) {
	u, err := url.Parse(strings.NewReplacer("${", "", "}", "").Replace(s))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "write https://host/path", errors.New("is not an address")
	case hosts.Unprotected(u):
		return "write https://" + u.Host + u.Path, errors.New("would send what is said to it unprotected over the network")
	}
	return "", nil
}

func checkOAuth(s string) (fix string, err error) {
	known := []string{"grant", "issuer", "clientSecret", "clientKey", "token", "provider", "providerClient"}
	if !slices.Contains(known, s) {
		return "write one of " + strings.Join(known, ", "), errors.New("is not known")
	}
	return "", nil
}

func checkHeader(s string) (fix string, err error) {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`:"(),/;<=>?@[\]{}`, c) }) {
		return "write a name such as X-Team", errors.New("is not the name of a header")
	}
	return "", nil
}

// arguments are those of a program: any text, and empty ones count.
func arguments() kind[[]string] {
	return kind[[]string]{
		empty: true,
		parse: func(r *reading, at spot, v yamldoc.Value) ([]string, bool) {
			items, ok := r.list(at, v, "a list of arguments, as in [-y, server-files]")
			var out []string
			for i, item := range items {
				s, fine := scalarText(item)
				if !fine {
					r.mistyped(spot{fmt.Sprintf("%s[%d]", at.key, i), item.Line}, item, "a text")
					ok = false
				}
				out = append(out, s)
			}
			return out, ok
		},
		show: showTexts,
	}
}

// scalarText returns a value as the text that it was written as.
func scalarText(v yamldoc.Value) (string, bool) {
	switch x := v.Any.(type) {
	case string:
		return x, !strings.ContainsRune(x, 0)
	case bool, int64, uint64, float64, int:
		return v.Text, true
	}
	return "", false
}

// textMap maps names to texts. A text that refers to nothing may be a secret,
// and is not shown.
func textMap(example string, check func(string) (fix string, err error)) kind[map[string]string] {
	return kind[map[string]string]{
		empty: true,
		parse: func(r *reading, at spot, v yamldoc.Value) (map[string]string, bool) {
			if v.Any == nil {
				return nil, true
			}
			m, ok := v.Any.(*yamldoc.Map)
			if !ok {
				r.mistyped(at, v, "a map, as in "+example)
				return nil, false
			}
			out := make(map[string]string, len(m.Fields))
			for _, f := range m.Fields {
				where := spot{at.key + "." + plain(f.Key), f.Line}
				if fix, err := check(f.Key); err != nil || f.Key == "" {
					r.fault(where, "bad-value", cmp.Or(fix, "write a name"), "%s %v", where.key, cmp.Or(err, errors.New("has no name")))
					ok = false
					continue
				}
				s, fine := scalarText(f.Value)
				if !fine {
					r.mistyped(where, f.Value, "a text")
					ok = false
				}
				out[f.Key] = s
			}
			return out, ok
		},
		show: func(m map[string]string) any {
			out := &yamldoc.Map{}
			for _, name := range slices.Sorted(maps.Keys(m)) {
				value := m[name]
				if value != "" && !strings.Contains(value, "${") {
					value = hidden
				}
				out.Fields = append(out.Fields, yamldoc.Field{Key: name, Value: yamldoc.Value{Any: value}})
			}
			return out
		},
	}
}

// wordMap is a map whose values are each one of a few words.
func wordMap[T ~string](example string, words ...T) kind[map[string]string] {
	k, one := textMap(example, func(string) (string, error) { return "", nil }), word(words...)
	whole := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) (map[string]string, bool) {
		m, ok := v.Any.(*yamldoc.Map)
		for i := 0; ok && i < len(m.Fields); i++ {
			if f := m.Fields[i]; f.Key != "" {
				if _, fine := one.parse(r, spot{at.key + "." + plain(f.Key), f.Line}, f.Value); !fine {
					return nil, false
				}
			}
		}
		out, ok := whole(r, at, v)
		if len(out) == 0 {
			out = nil
		}
		return out, ok
	}
	k.show = func(m map[string]string) any {
		out := &yamldoc.Map{}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out.Fields = append(out.Fields, yamldoc.Field{Key: name, Value: yamldoc.Value{Any: m[name]}})
		}
		return out
	}
	return k
}
