package definitions

import (
	"encoding/json"
	"net/url"
	"strings"

	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/secret/detect"
)

// definition is the part of a server's definition that a person accepts: all
// that decides which program is started or which address is asked, and with what
// values. The server's name is the name of the pin.
type definition struct {
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	ClientID  string            `json:"clientId,omitempty"`
	Scopes    []string          `json:"scopes,omitempty"`
	Include   []string          `json:"include,omitempty"`
	Exclude   []string          `json:"exclude,omitempty"`
	Disabled  bool              `json:"disabled,omitempty"`
	Project   string            `json:"project,omitempty"`
	Scope     string            `json:"scope,omitempty"`
	Profile   string            `json:"profile,omitempty"`
	Read      []string          `json:"read,omitempty"`
	Write     []string          `json:"write,omitempty"`
	Hosts     []string          `json:"hosts,omitempty"`
}

// secretValue stands for a token. A new token does not make another server.
const secretValue = "(a secret)"

// A redactor writes the values of one definition as they are pinned. They
// contain no secret, but every ${NAME} that a value refers to: the name decides
// which variable of Ken's environment the server receives.
type redactor struct {
	key    audit.Key // of this installation, so that guesses cannot be tried
	server string
}

// canonical returns a definition in the form in which it is pinned.
func canonical(key audit.Key, s connect.Server) pin.Tool {
	r := redactor{key, s.Name}
	d := definition{
		Command: s.Command, Cwd: r.shown("", s.Cwd), URL: r.address(s.URL), Transport: s.Transport,
		ClientID: s.ClientID, Scopes: s.Scopes, Include: s.Include, Exclude: s.Exclude, Disabled: s.Disabled,
		Project: s.Ken.Project, Scope: s.Ken.Scope, Profile: s.Ken.Profile, Read: s.Ken.Read, Write: s.Ken.Write, Hosts: s.Ken.Hosts,
		Env: map[string]string{}, Headers: map[string]string{},
	}
	before := ""
	for _, arg := range s.Args {
		d.Args = append(d.Args, r.shown(strings.TrimLeft(before, "-"), arg))
		before = arg
	}
	for name, value := range s.Env {
		d.Env[name] = r.variable(name, value)
	}
	for name, value := range s.Headers {
		d.Headers[name] = r.header(name, value)
	}
	text, _ := json.Marshal(d) // plain data cannot fail
	return pin.Tool{Name: s.Name, Input: text}
}

// variable returns the value of an environment variable. Any value may decide
// what is loaded, so all are pinned except tokens.
func (r redactor) variable(name, value string) string {
	switch {
	case detect.Rotates(name, value):
		return secretValue
	case detect.NamesSecret(name) && len(value) >= minSecret && !refers(value):
		return r.hidden(name, value) // it looks like a path or a command, and may be a secret all the same
	}
	return r.shown(name, value)
}

// minSecret is the shortest secret, in bytes. Values like true and none are shorter.
const minSecret = 6

// header returns the value of a header. A secret in it cannot start anything,
// and goes to the address that is pinned.
func (r redactor) header(name, value string) string {
	if detect.Hides(name, value) && !refers(value) {
		return secretValue
	}
	return r.shown(name, value)
}

// shown returns a value, or a digest if the value contains a secret.
func (r redactor) shown(name, value string) string {
	if !detect.Hides(name, value) {
		return value
	}
	return r.hidden(name, value)
}

func (r redactor) hidden(name, value string) string {
	return "(not shown" + r.digest(name, value) + ")"
}

// address returns an address without the parts that may be secret, and a digest
// of them.
func (r redactor) address(text string) string {
	u, err := url.Parse(text)
	var path []string
	secret := detect.Hides("", text)
	if err == nil {
		for _, part := range strings.Split(u.Path, "/") {
			if detect.Hides("", part) {
				part, secret = "…", true
			}
			path = append(path, part)
		}
	}
	switch {
	case !secret:
		return text
	case err != nil:
		return "an address (not shown" + r.digest("url", text) + ")"
	}
	return u.Scheme + "://" + u.Host + strings.Join(path, "/") + " (and what is not shown" + r.digest("url", text) + ")"
}

// digest returns a keyed digest of a text, after the names that the text refers
// to.
func (r redactor) digest(name, text string) string {
	var names string
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "${")
		if !found {
			break
		}
		inner, next, _ := strings.Cut(after, "}")
		inner, _, _ = strings.Cut(inner, ":-")
		names, rest = names+" ${"+inner+"}", next
	}
	if names != "" {
		names = ", with" + names
	}
	whole, _ := json.Marshal([]string{"mcp.import", r.server, name, text}) // texts cannot fail
	_, sum, _ := strings.Cut(r.key.Digest(whole), ":")
	return names + ", " + sum[:32]
}

// refers reports whether a value refers to a variable or a secret.
func refers(value string) bool { return strings.Contains(value, "${") }
