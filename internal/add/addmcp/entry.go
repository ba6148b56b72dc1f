package addmcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/run/executor"
)

// An entry describes a server, as server.json and MCP registries have it.
type entry struct {
	Name        string     `json:"name"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Version     string     `json:"version"`
	Repository  repository `json:"repository"`
	Packages    []pack     `json:"packages"`
	Remotes     []endpoint `json:"remotes"`

	// Status is "deprecated" or "deleted" if the registry says so.
	Status string `json:"-"`
}

type repository struct {
	URL string `json:"url"`
}

// UnmarshalJSON reads a repository, which package.json may have as a text.
func (r *repository) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &r.URL) == nil {
		return nil
	}
	type plain repository
	return json.Unmarshal(data, (*plain)(r))
}

// A pack is a package that has the server's program.
type pack struct {
	RegistryType     string     `json:"registryType"`
	RegistryBaseURL  string     `json:"registryBaseUrl"`
	Identifier       string     `json:"identifier"`
	Version          string     `json:"version"`
	RuntimeHint      string     `json:"runtimeHint"`
	RuntimeArguments []argument `json:"runtimeArguments"`
	Arguments        []argument `json:"packageArguments"`
	Environment      []input    `json:"environmentVariables"`
	Transport        struct {
		Type string `json:"type"`
	} `json:"transport"`
}

// An endpoint is an address at which the server is.
type endpoint struct {
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []input          `json:"headers"`
	Variables map[string]input `json:"variables"`
}

// An input is a value that the person who adds the server may have to give.
type input struct {
	Name        string           `json:"name"` // of a variable or header
	Description string           `json:"description"`
	Required    bool             `json:"isRequired"`
	Secret      bool             `json:"isSecret"`
	Value       string           `json:"value"`
	Default     string           `json:"default"`
	Variables   map[string]input `json:"variables"`
}

type argument struct {
	input
	Type string `json:"type"` // positional or named
	Hint string `json:"valueHint"`
}

const officialKey = "io.modelcontextprotocol.registry/official"

// readEntries reads a server.json, an answer of a registry, or a list of either.
func readEntries(data []byte) ([]entry, error) {
	var list struct {
		Servers []json.RawMessage `json:"servers"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("document is not JSON: %w", err)
	}
	if list.Servers == nil {
		list.Servers = []json.RawMessage{data}
	}
	var out []entry
	for _, one := range list.Servers {
		var answer struct {
			Server json.RawMessage            `json:"server"`
			Meta   map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(one, &answer); err != nil {
			return nil, fmt.Errorf("an entry cannot be read: %w", err)
		}
		if answer.Server == nil {
			answer.Server = one
		}
		var e entry
		if err := json.Unmarshal(answer.Server, &e); err != nil {
			return nil, fmt.Errorf("an entry cannot be read: %w", err)
		}
		var official struct {
			Status string `json:"status"`
		}
		_ = json.Unmarshal(answer.Meta[officialKey], &official) // other registries say nothing
		e.Status = official.Status
		out = append(out, e)
	}
	return out, nil
}

// LooksLikeEntry reports whether a document describes MCP servers, as server.json
// does.
func LooksLikeEntry(data []byte) bool {
	list, err := readEntries(data)
	return err == nil && slices.ContainsFunc(list, func(e entry) bool { return e.Name != "" && len(e.Packages)+len(e.Remotes) > 0 })
}

// entryName matches the name of a server in a registry, perhaps with a version.
var entryName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9.-]+/[A-Za-z0-9._-]+)(?:@([A-Za-z0-9.+-]+))?$`)
})

// npmName matches the name of an npm package, and nothing else that npm installs:
// no address, folder or alias.
var npmName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$`)
})

var exactVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?$`) })

// usable returns the package or the address that Ken can use, the package first.
func (e *entry) usable() (*pack, *endpoint, error) {
	var others []string
	for i, p := range e.Packages {
		switch {
		case p.RegistryType != "npm":
			others = append(others, fmt.Sprintf("a package of type %q", p.RegistryType))
		case p.Transport.Type != "" && p.Transport.Type != "stdio":
			others = append(others, fmt.Sprintf("an npm package that speaks %q", p.Transport.Type))
		default:
			return &e.Packages[i], nil, nil
		}
	}
	for _, kind := range []string{"streamable-http", "sse"} {
		for i, r := range e.Remotes {
			if r.Type == kind {
				return nil, &e.Remotes[i], nil
			}
		}
	}
	for _, r := range e.Remotes {
		others = append(others, fmt.Sprintf("an address of type %q", r.Type))
	}
	if others == nil {
		return nil, nil, errors.New("entry names neither packages nor remotes")
	}
	return nil, nil, fmt.Errorf("only npm packages that speak stdio, and remote servers, can be added; it has only %s", strings.Join(others, ", "))
}

// differs makes the error of an entry that says one thing and would do another.
func differs(format string, args ...any) error {
	return &capability.Error{
		Kind: capability.Invalid, Err: fmt.Errorf("the entry would run something other than it describes: "+format, args...),
		Fix: "do not use this entry; if you know the package, ken add npm:PACKAGE takes it without the entry",
	}
}

// check refuses a package whose command would not be that package.
func (p *pack) check() error {
	switch {
	case !npmName().MatchString(p.Identifier):
		return differs("%q is not the name of an npm package", p.Identifier)
	case !exactVersion().MatchString(p.Version):
		return differs("%q is not one exact version of %s", p.Version, p.Identifier)
	case p.RuntimeHint != "" && p.RuntimeHint != "npx" && p.RuntimeHint != "node":
		return differs("it names the npm package %s, and %q as the program that starts it", p.Identifier, p.RuntimeHint)
	case p.RegistryBaseURL != "" && strings.TrimSuffix(p.RegistryBaseURL, "/") != "https://registry.npmjs.org":
		return differs("%s is to come from %s, and npm packages come from the registry that npm is set up with", p.Identifier, p.RegistryBaseURL)
	}
	for _, a := range p.RuntimeArguments { // npx may be told to start another package, or a command
		if text := strings.TrimSpace(a.Name + " " + a.Value); text != "-y" && text != "--yes" {
			return differs("npx is given %q before the package", text)
		}
	}
	for _, v := range p.Environment {
		if executor.LoadsCode(v.Name) || v.Name == "PATH" || v.Name == "HOME" || strings.HasPrefix(strings.ToLower(v.Name), "npm_config_") {
			return differs("the variable %s decides which code is run", v.Name)
		}
	}
	return nil
}

// refers refuses a text of an entry in which a reference stands that Ken would
// replace by a variable or secret of the user.
func refers(where, text string) error {
	if strings.Contains(text, "${") {
		return differs("%s has a reference to a variable or secret of yours: %q", where, text)
	}
	return nil
}

// A value is what becomes of an input.
type value struct {
	text    string
	secrets []Secret // that it refers to
	missing string   // what has to be given for it
	absent  bool     // it is not needed
}

// resolve returns the value of an input. secret names the secret that it, or a
// part of it, is kept under.
func (in *input) resolve(where string, secret func(part string) string) (value, error) {
	if err := errors.Join(refers(where, in.Value), refers(where, in.Default)); err != nil {
		return value{}, err
	}
	switch {
	case in.Value != "":
		out, err := fill(where, in.Value, in.Variables, secret)
		if err == nil && in.Secret && len(out.secrets) == 0 && out.missing == "" {
			err = fmt.Errorf("%s is said to be a secret, and stands in the entry", where)
		}
		return out, err
	case in.Secret && in.Required:
		s := Secret{Name: secret(""), Description: in.Description}
		return value{text: "${secret:" + s.Name + "}", secrets: []Secret{s}}, nil
	case in.Default != "" && !in.Secret:
		return value{text: in.Default}, nil
	case in.Required:
		return value{missing: strings.TrimSuffix(where+": "+in.Description, ": ")}, nil
	}
	return value{absent: true}, nil
}

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[A-Za-z0-9_-]+\}`) })

// fill replaces the variables of a text, as {name}.
func fill(where, text string, variables map[string]input, secret func(part string) string) (value, error) {
	out := value{}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if !strings.Contains(text, "{"+name+"}") {
			continue
		}
		v := variables[name]
		got, err := v.resolve(where+" ("+name+")", func(string) string { return secret(name) })
		switch {
		case err != nil:
			return out, err
		case got.missing != "" || got.absent:
			out.missing = strings.TrimSuffix(where+" ("+name+"): "+v.Description, ": ")
		}
		out.secrets = append(out.secrets, got.secrets...)
		text = strings.ReplaceAll(text, "{"+name+"}", got.text)
	}
	if left := placeholder().FindString(text); left != "" && out.missing == "" {
		out.missing = where + ": " + left
	}
	out.text = text
	return out, nil
}

// arguments returns those of the program. What a person gave stands for all that
// the entry leaves open.
func (p *pack) arguments(given []string) (args, missing []string, err error) {
	took := false
	for i, a := range p.Arguments {
		where := "argument " + cmp.Or(a.Name, a.Hint, fmt.Sprint(i+1))
		open := a.Value == "" || strings.Contains(a.Value, "{")
		if err := refers(where, a.Name); err != nil {
			return nil, nil, err
		}
		if open && len(given) > 0 {
			if !took {
				took, args = true, append(args, given...)
			}
			continue
		}
		if a.Type == "named" && a.Value == "" && a.Default == "" && !a.Required {
			continue // a flag that one may give
		}
		v, err := a.resolve(where, func(string) string { return "" })
		switch {
		case err != nil:
			return nil, nil, err
		case len(v.secrets) > 0: // other users of the machine see arguments
			return nil, nil, fmt.Errorf("%s is a secret, and arguments can be seen by every user of this machine", where)
		case v.missing != "":
			missing = append(missing, v.missing)
			continue
		case a.Default != "" && a.Value == "" && !a.Required, v.absent:
			continue
		}
		if a.Type == "named" {
			args = append(args, a.Name)
		}
		args = append(args, v.text)
	}
	if !took {
		args = append(args, given...)
	}
	return args, missing, nil
}
