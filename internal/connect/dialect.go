package connect

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ken/internal/untrusted"
)

// The entries of each client, read. Why is what makes an entry no server that
// Ken can stand in front of; it then stays where it is.

func parseClaude(f *fields) (Server, string) {
	if f.has("headersHelper") {
		return Server{}, "its headers come from a program of the client (headersHelper)"
	}
	return standard(f)
}

// parseEditor reads VS Code's and Cursor's.
func parseEditor(f *fields) (Server, string) {
	switch {
	case f.has("envFile"):
		return Server{}, "it has an envFile, which Ken does not read; write its variables under env"
	case f.has("auth"):
		return Server{}, "it signs in by settings that Ken does not take over (auth)"
	}
	for _, key := range []string{"dev", "sandboxEnabled", "sandbox"} {
		f.take(key) // about the client's own window and sandbox
	}
	return standard(f)
}

func parseGemini(f *fields) (Server, string) {
	if v := f.text("authProviderType"); v != "" && v != "dynamic_discovery" {
		return Server{}, fmt.Sprintf("it signs in by the client (authProviderType %q)", untrusted.Line(v, 40))
	}
	if f.has("tcp") {
		return Server{}, "it is reached over tcp, which Ken does not speak"
	}
	f.take("authProviderType")
	s, why := standard(f)
	if why == "" && s.URL != "" && !f.has("type") && !f.has("httpUrl") && strings.HasSuffix(strings.TrimRight(s.URL, "/"), "/sse") {
		s.Transport = "sse"
	}
	return s, why
}

// parseQwen: an address called url is one of events, and httpUrl is the other.
func parseQwen(f *fields) (Server, string) {
	f.take("alwaysLoadTools") // about what its model sees
	s, why := parseGemini(f)
	if why == "" && f.has("url") && !f.has("type") && !f.has("httpUrl") {
		s.Transport = "sse"
	}
	return s, why
}

func parseZed(f *fields) (Server, string) {
	if source, _ := f.m["source"].(string); source == "extension" || !f.has("command") && !f.has("url") {
		return Server{}, "it comes with an extension of the editor"
	}
	// An older form has the command as an object.
	if inner, ok := fieldsOf(f.m["command"]); ok {
		path := inner.text("path")
		for _, key := range []string{"args", "env"} {
			if inner.has(key) && !f.has(key) {
				f.m[key] = inner.m[key]
			}
		}
		f.m["command"] = path
	}
	f.take("settings")
	timeout := f.duration("timeout", time.Second)
	delete(f.m, "timeout")
	s, why := standard(f)
	s.Timeout = timeout
	return s, why
}

func parseOpencode(f *fields) (Server, string) {
	var s Server
	if enabled, there := f.flag("enabled"); there && !enabled {
		s.Disabled = true
	}
	kind := f.text("type")
	s.StartTimeout = f.duration("timeout", time.Millisecond)
	switch {
	case kind == "local" || kind == "" && f.has("command"):
		command := f.texts("command")
		if len(command) == 0 || command[0] == "" {
			return s, "it has no command"
		}
		s.Command, s.Args = command[0], command[1:]
		s.Env, s.Cwd = f.table("environment"), f.text("cwd")
	case kind == "remote":
		s.URL, s.Headers = f.text("url"), f.table("headers")
		if why := s.oauth(f); why != "" {
			return s, why
		}
	case kind == "" && !f.has("url"):
		return s, "it only switches on or off what is said elsewhere"
	default:
		return s, fmt.Sprintf("Ken does not speak its type %q", untrusted.Line(kind, 40))
	}
	return s, s.reach("")
}

func parseCodex(f *fields) (Server, string) {
	for _, key := range []string{"http_headers_helper", "environment_id"} {
		if f.has(key) {
			return Server{}, "Codex does a part of it (" + key + ")"
		}
	}
	if auth, _ := f.m["auth"].(string); auth != "" && auth != "oauth" {
		return Server{}, "it signs in by Codex (auth)"
	}
	var s Server
	s.Command, s.Args, s.Env, s.Cwd = f.text("command"), f.texts("args"), f.table("env"), f.text("cwd")
	s.URL, s.Headers = f.text("url"), f.table("http_headers")
	if enabled, there := f.flag("enabled"); there && !enabled {
		s.Disabled = true
	}
	s.StartTimeout = cmp.Or(f.duration("startup_timeout_sec", time.Second), f.duration("startup_timeout_ms", time.Millisecond))
	s.Timeout = f.duration("tool_timeout_sec", time.Second)
	s.Include, s.Exclude = f.texts("enabled_tools"), f.texts("disabled_tools")
	s.Scopes = f.texts("scopes")
	if why := s.oauth(f); why != "" {
		return s, why
	}
	if token := f.text("bearer_token"); token != "" {
		s.header("Authorization", "Bearer "+token)
	}
	for _, key := range []string{"auth", "required", "default_tools_approval_mode", "tools", "supports_parallel_tool_calls", "startup_readiness", "omit_tools_from", "tool_input_schema_max_bytes", "name", "description", "transport", "type"} {
		f.take(key)
	}
	for _, key := range []string{"env_vars", "bearer_token_env_var", "env_http_headers"} {
		f.take(key) // read by codexVariables, since they are references
	}
	return s, s.reach("")
}

func (s *Server) header(name, value string) {
	if s.Headers == nil {
		s.Headers = map[string]string{}
	}
	s.Headers[name] = value
}

// codexVariables adds the values that Codex takes from its environment. They
// are added after the others were made literal.
func codexVariables(f *fields, s *Server) (why string) {
	variable := func(name string) string {
		if !reVariable().MatchString(name) {
			why = fmt.Sprintf("%q is not a valid variable name", untrusted.Line(name, 40))
		}
		return "${" + name + "}"
	}
	if list, ok := f.m["env_vars"].([]any); ok {
		for _, item := range list {
			name, ok := item.(string)
			if m, table := item.(map[string]any); table {
				name, ok = m["name"].(string)
			}
			if !ok {
				return "its env_vars are not names"
			}
			if s.Env == nil {
				s.Env = map[string]string{}
			}
			if _, set := s.Env[name]; !set {
				s.Env[name] = variable(name)
			}
		}
	}
	if name := f.text("bearer_token_env_var"); name != "" {
		s.header("Authorization", "Bearer "+variable(name))
	}
	for header, name := range f.table("env_http_headers") {
		s.header(header, variable(name))
	}
	return why
}

// Ken's own entry, in the form of each client.

// entryTyped is for clients that name the type first. Some have env always.
func entryTyped(stdio string, always bool) func(Entry) pairs {
	return func(e Entry) pairs {
		if e.URL != "" {
			return withHeaders(pairs{{"type", "http"}, {"url", e.URL}}, "headers", e)
		}
		p := pairs{{"type", stdio}, {"command", e.Command}, {"args", e.args()}}
		if always && e.Home == "" {
			return append(p, pair{"env", pairs{}})
		}
		return withEnv(p, "env", e)
	}
}

// entryPlain is for clients that tell by the keys.
func entryPlain(address string) func(Entry) pairs {
	return func(e Entry) pairs {
		if e.URL != "" {
			return withHeaders(pairs{{address, e.URL}}, "headers", e)
		}
		return withEnv(pairs{{"command", e.Command}, {"args", e.args()}}, "env", e)
	}
}

func entryOpencode(e Entry) pairs {
	if e.URL != "" {
		return append(withHeaders(pairs{{"type", "remote"}, {"url", e.URL}}, "headers", e), pair{"enabled", true})
	}
	return append(withEnv(pairs{{"type", "local"}, {"command", append([]string{e.Command}, e.args()...)}}, "environment", e), pair{"enabled", true})
}

func entryCodex(e Entry) pairs {
	if e.URL != "" {
		return withHeaders(pairs{{"url", e.URL}}, "http_headers", e)
	}
	return withEnv(pairs{{"command", e.Command}, {"args", e.args()}}, "env", e)
}

func withEnv(p pairs, key string, e Entry) pairs {
	if env := e.env(); len(env) > 0 {
		p = append(p, pair{key, env})
	}
	return p
}

func withHeaders(p pairs, key string, e Entry) pairs {
	if h := e.headers(); len(h) > 0 {
		p = append(p, pair{key, h})
	}
	return p
}
