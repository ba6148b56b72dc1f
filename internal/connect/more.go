package connect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/internal/untrusted"
)

// Clients whose files are close to those of others, and those with YAML.

// parseCopilot: a list of tools stands for the only ones, and a star for all.
func parseCopilot(f *fields) (Server, string) {
	tools := f.texts("tools")
	for _, key := range []string{"oauthClientId", "oauthPublicClient", "auth"} {
		if f.has(key) {
			return Server{}, "it signs in by settings that Ken does not take over (" + key + ")"
		}
	}
	s, why := standard(f)
	switch {
	case f.has("tools") && len(tools) == 0:
		s.Disabled = true // none of its tools is used
	case !slices.Contains(tools, "*"):
		s.Include = append(s.Include, tools...)
	}
	return s, why
}

func parseContinue(f *fields) (Server, string) {
	if f.text("name") == "" {
		return Server{}, "it has no name"
	}
	for _, key := range []string{"faviconUrl", "sourceFile", "sourceSlug"} {
		f.take(key)
	}
	key, wait := f.text("apiKey"), f.duration("connectionTimeout", time.Millisecond)
	var options *fields
	if v := f.take("requestOptions"); v != nil {
		var ok bool
		if options, ok = fieldsOf(v); !ok {
			return Server{}, "its requestOptions are no keys and values"
		}
	}
	s, why := standard(f)
	s.StartTimeout = wait
	if options != nil {
		s.Headers = options.table("headers")
		if rest := options.rest(); len(rest) > 0 && why == "" {
			why = "it has request options that Ken does not take over (" + untrusted.Line(strings.Join(rest, ", "), 80) + ")"
		}
	}
	if key != "" {
		s.header("Authorization", "Bearer "+key)
	}
	return s, why
}

func parseGoose(f *fields) (Server, string) {
	var s Server
	if enabled, there := f.flag("enabled"); there && !enabled {
		s.Disabled = true
	}
	for _, key := range []string{"name", "description", "display_name", "bundled"} {
		f.take(key)
	}
	if keys := f.texts("env_keys"); len(keys) > 0 {
		return s, "Goose keeps " + untrusted.Line(strings.Join(keys, ", "), 80) + " in its own secrets (env_keys); set them under envs"
	}
	s.Timeout, s.Include = f.duration("timeout", time.Second), f.texts("available_tools")
	switch kind := f.text("type"); kind {
	case "stdio":
		s.Command, s.Args, s.Env, s.Cwd = f.text("cmd"), f.texts("args"), f.table("envs"), f.text("cwd")
		return s, s.reach("stdio")
	case "sse", "streamable_http":
		s.URL, s.Headers = f.text("uri"), f.table("headers")
		for _, v := range s.Headers {
			if strings.Contains(v, "$") {
				return s, "Goose fills in its headers"
			}
		}
		if f.has("socket") {
			return s, "it is reached over a socket, which Ken does not speak"
		}
		f.take("envs") // only for its headers
		return s, s.reach(kind)
	default:
		return s, fmt.Sprintf("it is a part of Goose (type %q)", untrusted.Line(kind, 40))
	}
}

func parseCrush(f *fields) (Server, string) {
	if runsCommand(f.m) {
		return Server{}, "it uses $(…), a command that only the client runs"
	}
	enabled, disabled, timeout := f.texts("enabled_tools"), f.texts("disabled_tools"), f.duration("timeout", time.Second)
	delete(f.m, "timeout")
	s, why := standard(f)
	s.Include, s.Exclude, s.Timeout = append(s.Include, enabled...), append(s.Exclude, disabled...), timeout
	return s, why
}

// runsCommand reports whether a value has a command in it, as shells write it.
func runsCommand(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "$(") || strings.Contains(v, "`")
	case []any:
		return slices.ContainsFunc(v, runsCommand)
	case map[string]any:
		for _, inner := range v {
			if runsCommand(inner) {
				return true
			}
		}
	}
	return false
}

func parseWindsurf(f *fields) (Server, string) {
	disabled := f.texts("disabledTools")
	s, why := parseEditor(f)
	s.Exclude = append(s.Exclude, disabled...)
	return s, why
}

// entryQwen has the tools shown at once: Qwen Code hides those of servers behind a
// search of its own, and Ken's are few and search themselves.
func entryQwen(e Entry) pairs {
	return append(entryPlain("httpUrl")(e), pair{"alwaysLoadTools", true})
}

func entryCopilot(e Entry) pairs {
	all := pair{"tools", []string{"*"}}
	if e.URL != "" {
		return append(withHeaders(pairs{{"type", "http"}, {"url", e.URL}}, "headers", e), all)
	}
	return append(withEnv(pairs{{"type", "local"}, {"command", e.Command}, {"args", e.args()}}, "env", e), all)
}

// entryGeneric names the type only where the keys might not say it.
func entryGeneric(e Entry) pairs {
	if e.URL != "" {
		return withHeaders(pairs{{"type", "http"}, {"url", e.URL}}, "headers", e)
	}
	return withEnv(pairs{{"command", e.Command}, {"args", e.args()}}, "env", e)
}

func entryContinue(e Entry) pairs {
	if e.URL != "" {
		p := pairs{{"type", "streamable-http"}, {"url", e.URL}}
		if h := e.headers(); len(h) > 0 {
			p = append(p, pair{"requestOptions", pairs{{"headers", h}}})
		}
		return p
	}
	return withEnv(pairs{{"type", "stdio"}, {"command", e.Command}, {"args", e.args()}}, "env", e)
}

func entryGoose(e Entry) pairs {
	p := pairs{{"enabled", true}, {"type", "stdio"}, {"name", "ken"}, {"description", "The tools of all MCP servers behind Ken"}}
	if e.URL != "" {
		p[1].value = "streamable_http"
		p = append(p, pair{"uri", e.URL}, pair{"headers", e.headers()}, pair{"envs", pairs{}})
	} else {
		p = append(p, pair{"cmd", e.Command}, pair{"args", e.args()}, pair{"envs", e.env()})
	}
	return append(p, pair{"env_keys", []string{}}, pair{"timeout", 300}, pair{"available_tools", []string{}})
}

// codexInlines says why Codex gives its model all tools at once; empty where it
// lets the model search for them, as it does with the models of OpenAI that can.
func codexInlines(doc map[string]any, cache string) (why string) {
	model, _ := doc["model"].(string)
	if provider, _ := doc["model_provider"].(string); provider != "" && provider != "openai" {
		return "its model_provider is " + untrusted.Line(provider, 40)
	}
	data, _, err := readFile(cache)
	if err != nil || model == "" || !isThere(cache) {
		return ""
	}
	known, err := jsonFormat{}.read(data)
	if err != nil {
		return ""
	}
	list, _ := known["models"].([]any)
	for _, item := range list {
		if m, _ := item.(map[string]any); m["slug"] == model && m["supports_search_tool"] != true {
			return "its model " + untrusted.Line(model, 40) + " does not search for tools"
		}
	}
	return ""
}
