package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"ken/capability"
	hosts "ken/internal/address"
	"ken/internal/coldsort"
	"ken/internal/yamldoc"
)

// A Provider is a service that runs models.
type Provider struct {
	Name string

	// Wire is the protocol that it speaks; one of the words of [Wires].
	Wire string

	// URL is where it answers, and Key the name of the secret or of the
	// variable that holds its key; empty sends none.
	URL string
	Key string

	Headers map[string]string // ${env:NAME} and ${secret:NAME} stand for values

	// CondenseAt replaces chat.condenseAt, in percent; -1, the default, leaves
	// it.
	CondenseAt int
}

// The protocols of providers.
const (
	WireChat      = "openai-chat"
	WireResponses = "openai-responses"
	WireMessages  = "anthropic"
	WireGemini    = "gemini"
)

// Wires lists the protocols that a provider may speak.
func Wires() []string { return []string{WireResponses, WireChat, WireMessages, WireGemini} }

// builtinProviders are known without a word in any file.
func builtinProviders() map[string]Provider {
	out := map[string]Provider{}
	for _, p := range []Provider{
		{Name: "anthropic", Wire: WireMessages, URL: "https://api.anthropic.com", Key: "ANTHROPIC_API_KEY"},
		{Name: "openai", Wire: WireResponses, URL: "https://api.openai.com/v1", Key: "OPENAI_API_KEY"},
		{Name: "openai-chat", Wire: WireChat, URL: "https://api.openai.com/v1", Key: "OPENAI_API_KEY"},
		{Name: "gemini", Wire: WireGemini, URL: "https://generativelanguage.googleapis.com", Key: "GEMINI_API_KEY"},
		{Name: "openrouter", Wire: WireChat, URL: "https://openrouter.ai/api/v1", Key: "OPENROUTER_API_KEY"},
		{Name: "ollama", Wire: WireChat, URL: "http://127.0.0.1:11434/v1"},
		{Name: "lmstudio", Wire: WireChat, URL: "http://127.0.0.1:1234/v1"},
		{Name: "vllm", Wire: WireChat, URL: "http://127.0.0.1:8000/v1"},
		{Name: "llamacpp", Wire: WireChat, URL: "http://127.0.0.1:8080/v1"},
	} {
		p.CondenseAt = -1
		out[p.Name] = p
	}
	return out
}

// Provider returns the provider of a model that is written PROVIDER/NAME, and the
// name. What a file says of a built-in one is laid over it.
func (c Config) Provider(model string) (p Provider, name string, err error) {
	by, name, ok := strings.Cut(model, "/")
	if !ok || by == "" || name == "" {
		return Provider{}, "", fmt.Errorf("the model %q has no provider before its name; write it as anthropic/NAME", model)
	}
	known := c.knownProviders()
	p, ok = known[by]
	if !ok {
		return Provider{}, "", fmt.Errorf("unknown provider %q; the providers are %s", by, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return p, name, nil
}

// AllProviders returns every provider that a model can be named with, by name.
func (c Config) AllProviders() []Provider {
	known := c.knownProviders()
	var out []Provider
	for _, name := range slices.Sorted(maps.Keys(known)) {
		out = append(out, known[name])
	}
	return out
}

func (c Config) knownProviders() map[string]Provider {
	known := builtinProviders()
	for _, own := range c.Providers {
		known[own.Name] = own.over(known[own.Name])
	}
	return known
}

// CheckSet returns an error for a value that a key must not be set to with these
// settings: a model of an unknown provider.
func (c Config) CheckSet(key, value string) error {
	model := strings.Trim(value, `"'`)
	if key != modelKey || !strings.Contains(model, "/") { // Set judges the form
		return nil
	}
	if _, _, err := c.Provider(model); err != nil {
		return &capability.Error{
			Kind: capability.Invalid, Op: "set", Target: key, Err: err,
			Fix: "use one of these, or set providers first; the setting was not changed",
		}
	}
	return nil
}

// over lays what is said of a provider over what is known of it.
func (p Provider) over(known Provider) Provider {
	out := known
	out.Name = p.Name
	if p.Wire != "" {
		out.Wire = p.Wire
	}
	if p.URL != "" {
		out.URL = p.URL
		out.Key = "" // the key of one place is not for another
	}
	if p.Key != "" {
		out.Key = p.Key
	}
	if p.Headers != nil {
		out.Headers = p.Headers
	}
	if out.Wire == "" {
		out.Wire = WireChat
	}
	out.CondenseAt = p.CondenseAt
	return out
}

const (
	modelKey     = "model"
	providersKey = "providers"
)

func modelSettings() []setting[Config] {
	return []setting[Config]{
		entry(modelKey, "The model that ken chat talks to, as PROVIDER/NAME: anthropic/…, openai/…, gemini/…, ollama/…, or one of providers.",
			func(c *Config) *string { return &c.Model }, text(checkModel)),
		entry(providersKey, "Additional providers of models, by name, as in {lab: {wire: openai-chat, url: http://127.0.0.1:8000/v1, key: LAB_KEY}}. wire is openai-chat, openai-responses, anthropic or gemini; headers and condenseAt are optional.",
			func(c *Config) *[]Provider { return &c.Providers }, providers()),
	}
}

func checkModel(s string) (fix string, err error) {
	if by, name, ok := strings.Cut(s, "/"); s != "" && (!ok || !ServerName(by) || name == "") {
		return "write the provider and the model, as in ollama/qwen3", errors.New("is not PROVIDER/NAME")
	}
	return "", nil
}

func providerSettings() []setting[Provider] {
	return []setting[Provider]{
		entry("wire", "", func(p *Provider) *string { return &p.Wire }, word(Wires()...)),
		entry("url", "", func(p *Provider) *string { return &p.URL }, text(checkProviderURL)),
		entry("key", "", func(p *Provider) *string { return &p.Key }, text(nil)),
		entry("headers", "", func(p *Provider) *map[string]string { return &p.Headers }, textMap("{X-Team: a}", checkHeader)),
		entry("condenseAt", "", func(p *Provider) *int { return &p.CondenseAt }, whole(-1, 100)),
	}
}

func checkProviderURL(s string) (fix string, err error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil:
		return "write https://host/path", errors.New("is not an address")
	case hosts.Unprotected(u):
		return "write https://" + u.Host + u.Path, errors.New("would send what is said to it unprotected over the network")
	}
	return "", nil
}

// providers maps names to providers. What is said is sent to them, so a project
// has no say in them.
func providers() kind[[]Provider] {
	return kind[[]Provider]{
		empty:   true,
		form:    mapForm(tableForm(providerSettings())),
		noWider: func(a, b []Provider) bool { return reflect.DeepEqual(a, b) },
		parse:   parseProviders,
		show: func(list []Provider) any {
			out := &yamldoc.Map{}
			for i := range list {
				m := &yamldoc.Map{}
				for _, e := range providerSettings() {
					v := e.show(&list[i])
					if sub, isMap := v.(*yamldoc.Map); v == "" || v == int64(-1) || isMap && len(sub.Fields) == 0 {
						continue
					}
					m.Fields = append(m.Fields, yamldoc.Field{Key: e.name, Value: yamldoc.Value{Any: v}})
				}
				out.Fields = append(out.Fields, yamldoc.Field{Key: list[i].Name, Value: yamldoc.Value{Any: m}})
			}
			return out
		},
	}
}

func parseProviders(r *reading, at spot, v yamldoc.Value) ([]Provider, bool) {
	var out []Provider
	ok := named(r, at, v, "provider", "{wire: openai-chat, url: http://127.0.0.1:8000/v1}", func(where spot, name string, about *yamldoc.Map) {
		p := Provider{Name: name, CondenseAt: -1}
		_, known := builtinProviders()[name]
		told := len(r.problems)
		decode(r, where.key+".", about, providerSettings(), &p)
		if p.URL == "" && !known && len(r.problems) == told {
			r.fault(where, "bad-value", "write the url at which it answers", "%s says no url", where.key)
		}
		if p.CondenseAt >= 0 && p.CondenseAt < leastCondense {
			r.fault(where, "out-of-range", "write 5 to 100, or -1 for chat.condenseAt", "%s.condenseAt is %d", where.key, p.CondenseAt)
		}
		out = append(out, p)
	})
	coldsort.By(out, func(a, b Provider) int { return strings.Compare(a.Name, b.Name) })
	return out, ok
}
