package app

import (
	"encoding/json"
	"net/url"
	"strings"

	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
)

// definition is what a person trusts in a definition: all that decides what is
// started or asked, and with what. What it is called by is the pin's name.
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

// secretValue stands for a token, which may become another: a new token is no
// new server.
const secretValue = "(a secret)"

// A definer writes definitions as they are pinned. Nothing of a secret is in
// them, but every name that a value stands for is: it decides which variable of
// Ken's environment the server is given.
type definer struct {
	key    audit.Key // of the instance, so that nobody can try guesses
	server string
}

// definitionOf returns a definition as it is pinned.
func definitionOf(key audit.Key, s connect.Server) pin.Tool {
	w := definer{key, s.Name}
	d := definition{
		Command: s.Command, Cwd: w.shown("", s.Cwd), URL: w.address(s.URL), Transport: s.Transport,
		ClientID: s.ClientID, Scopes: s.Scopes, Include: s.Include, Exclude: s.Exclude, Disabled: s.Disabled,
		Project: s.Ken.Project, Scope: s.Ken.Scope, Profile: s.Ken.Profile, Read: s.Ken.Read, Write: s.Ken.Write, Hosts: s.Ken.Hosts,
		Env: map[string]string{}, Headers: map[string]string{},
	}
	before := ""
	for _, arg := range s.Args {
		d.Args = append(d.Args, w.shown(strings.TrimLeft(before, "-"), arg))
		before = arg
	}
	for name, value := range s.Env {
		d.Env[name] = w.variable(name, value)
	}
	for name, value := range s.Headers {
		d.Headers[name] = w.header(name, value)
	}
	text, _ := json.Marshal(d) // plain data cannot fail
	return pin.Tool{Name: s.Name, Input: text}
}

// variable: any value may be what loads another program, so all count but those
// of tokens.
func (w definer) variable(name, value string) string {
	switch {
	case connect.Rotates(name, value):
		return secretValue
	case connect.NamesSecret(name) && len(value) >= shortest && !refers(value):
		return w.hidden(name, value) // it looks like a path or a command, and may be a secret all the same
	}
	return w.shown(name, value)
}

// shortest is how long a secret is at least: true and none are switches.
const shortest = 6

// header: what is secret in one runs nothing, and goes to the address that is
// pinned.
func (w definer) header(name, value string) string {
	if connect.Hides(name, value) && !refers(value) {
		return secretValue
	}
	return w.shown(name, value)
}

// shown returns a value, or where it has a secret in it what tells it from
// another.
func (w definer) shown(name, value string) string {
	if !connect.Hides(name, value) {
		return value
	}
	return w.hidden(name, value)
}

func (w definer) hidden(name, value string) string { return "(not shown" + w.sign(name, value) + ")" }

// address returns an address without what may be secret in it.
func (w definer) address(text string) string {
	u, err := url.Parse(text)
	var path []string
	secret := connect.Hides("", text)
	if err == nil {
		for _, part := range strings.Split(u.Path, "/") {
			if connect.Hides("", part) {
				part, secret = "…", true
			}
			path = append(path, part)
		}
	}
	switch {
	case !secret:
		return text
	case err != nil:
		return "an address (not shown" + w.sign("url", text) + ")"
	}
	return u.Scheme + "://" + u.Host + strings.Join(path, "/") + " (and what is not shown" + w.sign("url", text) + ")"
}

// sign tells a text from any other that could stand in its place, and names what
// it refers to.
func (w definer) sign(name, text string) string {
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
	whole, _ := json.Marshal([]string{"mcp.import", w.server, name, text}) // texts cannot fail
	_, sum, _ := strings.Cut(w.key.Digest(whole), ":")
	return names + ", " + sum[:32]
}

// refers reports whether a value has a name in it that stands for another.
func refers(value string) bool { return strings.Contains(value, "${") }
