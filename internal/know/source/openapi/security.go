package openapi

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
	"ken/internal/yamldoc"
)

// A Credential says how one secret is sent. It is kept as JSON in Meta.
type Credential struct {
	Secret string `json:"secret"`         // name of the secret
	Scheme string `json:"scheme"`         // apiKey, bearer, basic, clientCredentials
	In     string `json:"in,omitempty"`   // apiKey: header, query, cookie
	Name   string `json:"name,omitempty"` // apiKey: of the header, parameter or cookie

	TokenURL string `json:"tokenUrl,omitempty"` // where OAuth gives tokens, or renews them
	Scope    string `json:"scope,omitempty"`
	Refresh  string `json:"refresh,omitempty"` // bearer: the secret that renews it, where there is one
	Client   string `json:"client,omitempty"`  // and that of the client's id
	Key      string `json:"key,omitempty"`     // and that of the client's own secret
}

// maxAPISchemes is how many schemes one operation may need at once.
const maxAPISchemes = 8

// secretPrefix makes the beginning of the names of an API's secrets.
func secretPrefix(title string) string {
	prefix := strings.Map(func(r rune) rune {
		if r == '_' || r < 0x80 {
			return r
		}
		return -1 // the names of environment variables are ASCII
	}, strings.ToUpper(slugOf(title, '_')))
	const most = 40
	prefix = strings.Trim(prefix[:min(len(prefix), most)], "_")
	if prefix == "" || prefix[0] <= '9' {
		return strings.TrimSuffix("API_"+prefix, "_")
	}
	return prefix
}

// secrets adds the secrets that an operation needs, by its own word or the
// API's: those of the first alternative. An empty alternative makes them
// optional, and then none is required.
func (d *apiDoc) secrets(call apiCall, c *capability.Capability) {
	ways, given := d.get(call.op, "security").Any.([]yamldoc.Value)
	if !given {
		ways, _ = d.get(d.top, "security").Any.([]yamldoc.Value)
	}
	optional := func(v yamldoc.Value) bool { return mapOf(v) == nil || len(mapOf(v).Fields) == 0 }
	if len(ways) == 0 || slices.ContainsFunc(ways, optional) {
		return
	}
	var auth []Credential
	schemes := mapOf(d.get(mapOf(d.get(d.top, "components")), "securitySchemes"))
	first := mapOf(ways[0]).Fields
	first = first[:min(len(first), maxAPISchemes)]
	for _, f := range first {
		scheme, err := d.deref(d.get(schemes, f.Key))
		if err != nil {
			d.undefinedScheme(call, f.Key)
			continue
		}
		auth = append(auth, d.authOf(scheme, f, len(first) > 1)...)
	}
	for _, a := range auth {
		if !slices.Contains(c.RequiredSecrets, a.Secret) {
			c.RequiredSecrets = append(c.RequiredSecrets, a.Secret)
		}
	}
	if len(auth) > 0 {
		raw, _ := json.Marshal(auth) // texts cannot fail
		c.Meta["auth"] = string(raw)
	}
}

func (d *apiDoc) undefinedScheme(call apiCall, name string) {
	if key := "security " + name; !d.reported[key] {
		d.reported[key] = true
		d.tally.Warn("missing-scheme", call.line, "security scheme "+jsonscan.Shorten(name)+" is not defined", "define it under components.securitySchemes")
	}
}

// authOf returns the secrets of one scheme. Where several are needed at once
// their names tell them apart.
func (d *apiDoc) authOf(scheme *yamldoc.Map, need yamldoc.Field, several bool) []Credential {
	prefix := d.prefix + "_"
	if several {
		prefix += secretPrefix(need.Key) + "_"
	}
	text := func(key string) string {
		s := textOf(d.get(scheme, key))
		return strings.ToValidUTF8(s[:min(len(s), maxAPIName)], "")
	}
	switch kind := text("type"); {
	case kind == "apiKey":
		return []Credential{{Secret: prefix + "API_KEY", Scheme: "apiKey", In: text("in"), Name: text("name")}}
	case kind == "http" && strings.EqualFold(text("scheme"), "basic"):
		return []Credential{{Secret: prefix + "USERNAME", Scheme: "basic"}, {Secret: prefix + "PASSWORD", Scheme: "basic"}}
	case kind == "oauth2":
		return d.oauth(mapOf(d.get(scheme, "flows")), prefix, strings.Join(textsOfList(need.Value), " "))
	case kind == "http", kind == "openIdConnect":
		return []Credential{{Secret: prefix + "TOKEN", Scheme: "bearer"}}
	}
	return nil // mutualTLS has no secret to name
}

// oauth returns the secrets of OAuth: those of a client where the flow of client
// credentials is the only one, and otherwise a token. A token can be renewed
// where its flow says how and a secret for it is there.
func (d *apiDoc) oauth(flows *yamldoc.Map, prefix, scope string) []Credential {
	address := func(flow *yamldoc.Map, key string) string {
		text := textOf(d.get(flow, key))
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || len(text) > maxAPIAddress || u.Scheme != "https" && u.Scheme != "http" {
			return ""
		}
		return text
	}
	client := mapOf(d.get(flows, "clientCredentials"))
	if at := address(client, "tokenUrl"); at != "" && len(flows.Fields) == 1 && len(scope) <= maxAPIAddress {
		return []Credential{
			{Secret: prefix + "CLIENT_ID", Scheme: "clientCredentials", TokenURL: at, Scope: scope},
			{Secret: prefix + "CLIENT_SECRET", Scheme: "clientCredentials", TokenURL: at},
		}
	}
	out := Credential{Secret: prefix + "TOKEN", Scheme: "bearer"}
	for _, name := range []string{"authorizationCode", "password"} {
		flow := mapOf(d.get(flows, name))
		if at := address(flow, "refreshUrl"); at != "" {
			out.TokenURL = at
		} else if at := address(flow, "tokenUrl"); at != "" {
			out.TokenURL = at
		} else {
			continue
		}
		out.Refresh, out.Client, out.Key = prefix+"REFRESH_TOKEN", prefix+"CLIENT_ID", prefix+"CLIENT_SECRET"
		break
	}
	return []Credential{out}
}
