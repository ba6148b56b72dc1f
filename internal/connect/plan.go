package connect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/connect/permission"
	"ken/internal/secret"
	"ken/internal/untrusted"
)

// Options say what to prepare.
type Options struct {
	Where
	Entry Entry

	// Secret looks up a stored secret, so that a name already taken by another
	// value is not taken again. Nil means that there are none.
	Secret func(name string) (secret.Value, bool)
}

// A Plan is what connecting a client would do. It holds the bytes of files,
// with their secrets; show it by [Plan.Diff] only.
type Plan struct {
	Client  string
	Files   []Change // only those that change
	Servers []Server // to be merged into mcp.json, in the order of the files
	Kept    []Kept   // entries that stay where they are
	Secrets []Secret // values that Servers refer to
	Notes   []string // what a person should know

	// Rules are the decisions of the client's user about tools, as rules of Ken for
	// this client, and Refused those that Ken has no rule for.
	Rules    []permission.Rule
	Refused  []permission.Refused
	NewRules bool // Rules are others than before

	// Surface is what the client asks Ken for, "bridge" where its model would be
	// shown every tool in every turn though its name does not say so.
	Surface string

	entry     Entry
	decisions []permission.Decision
}

// A Change is the new content of one file.
type Change struct {
	Path   string // as the client knows it
	Target string // what Path leads to, when it is a link
	Exists bool
	Before []byte
	After  []byte

	client  Client
	changes []change
	edits   []edit
}

// Kept is an entry that stays, and why.
type Kept struct {
	Name  string `json:"name"`
	Place string `json:"place"`
	Why   string `json:"why"`
}

func (k Kept) String() string { return k.Name + " stays in " + k.Place + ": " + k.Why }

// A Secret is a value that moves from a client's file into the sealed store.
// An empty one has no value there yet: a person has to set it.
type Secret struct {
	Name  string
	Value secret.Value
	Where string // the file and the entry that had it
	About string // what the client would ask for
}

// Prepare reads a client's configuration and works out what connecting it
// would change. It changes nothing.
func Prepare(o Options) (*Plan, error) {
	c, err := clientNamed(o.Client)
	if err != nil {
		return nil, err
	}
	if o.Entry.URL == "" && !filepath.IsAbs(o.Entry.Command) {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "connect", Target: o.Entry.Command, Err: errors.New("the path of the program is not absolute"), Fix: "name it from the root"}
	}
	files, err := Find(o.Where)
	if err != nil {
		return nil, err
	}
	b := &builder{options: o, client: c, plan: &Plan{Client: c.Name, entry: o.Entry}, sealed: map[string]secret.Value{}, inputs: map[string]string{}}
	for i, f := range files {
		if err := b.file(f, i == 0); err != nil {
			return nil, err
		}
	}
	b.plan.decisions, err = permission.Read(c.Name, b.permissions(files))
	return b.plan, err
}

// A builder makes one plan.
type builder struct {
	options  Options
	client   Client
	plan     *Plan
	sealed   map[string]secret.Value // by name, of this plan
	inputs   map[string]string       // what inputs of the client ask for
	barred   func(name string) bool  // left out by a list of the client
	barredIn string                  // the file of that list
	approved map[string]bool         // servers of the project's file, by what a person said
}

// A place is a table of servers in a file.
type place struct {
	at      []string
	project string
}

func (b *builder) refuse(path string, err error) error {
	return &capability.Error{
		Kind: capability.Invalid, Op: "read the configuration of " + b.client.Title, Target: path, Err: err,
		Fix: "fix the file, or name another with --file; nothing was changed",
	}
}

func (b *builder) file(f File, main bool) error {
	var lists []change
	data, target, err := readFile(f.Path)
	if err != nil {
		return err
	}
	b.client = b.client.forFile(f.Path, data)
	doc, err := b.client.format.read(data)
	if err != nil {
		return b.refuse(f.Path, err)
	}
	b.learn(doc, f)
	if main {
		if lists, err = b.lists(doc, f); err != nil {
			return err
		}
	}
	ch := Change{Path: f.Path, Target: target, Exists: f.Exists, Before: data, client: b.client}
	for _, p := range b.places(doc, f) {
		c, err := b.place(f, data, doc, p, main && len(p.at) == len(b.client.at))
		if err != nil {
			return b.refuse(f.Path, err)
		}
		if len(c.drop) > 0 || len(c.put) > 0 {
			ch.changes = append(ch.changes, c)
		}
	}
	ch.changes = append(ch.changes, lists...)
	if len(ch.changes) == 0 {
		return nil
	}
	ch.After, ch.edits, err = changed(b.client.format, data, ch.changes)
	if err != nil {
		return b.refuse(f.Path, err)
	}
	if !f.Exists || !bytes.Equal(ch.Before, ch.After) {
		b.plan.Files = append(b.plan.Files, ch)
	}
	return nil
}

// permissions says where the client's settings about tools are.
func (b *builder) permissions(files []File) permission.Config {
	env := b.options.environment()
	_, isTOML := b.client.format.(tomlFormat)
	out := permission.Config{TOML: isTOML, Home: env.Home, Project: b.options.Project, GOOS: env.GOOS, Getenv: env.Getenv}
	for _, f := range files {
		out.Files = append(out.Files, permission.File{Path: f.Path, Project: f.Project})
	}
	out.Read = func(path string, toml bool) (map[string]any, func([]string) []string, error) {
		var f format = jsonFormat{}
		_, isYAML := b.client.format.(yamlFormat)
		switch ext := filepath.Ext(path); {
		case toml:
			f = tomlFormat{}
		case ext == ".yaml" || ext == ".yml" || isYAML && slices.ContainsFunc(files, func(f File) bool { return f.Path == path }):
			f = yamlFormat{}
		}
		if !isThere(path) {
			return nil, func([]string) []string { return nil }, nil
		}
		data, _, err := readFile(path)
		if err != nil {
			return nil, nil, err
		}
		doc, err := f.read(data)
		if err != nil {
			return nil, nil, b.refuse(path, err)
		}
		return doc, func(at []string) []string { return f.names(data, at) }, nil
	}
	return out
}

// translate makes the rules of the plan. The servers are all that Ken has once the
// plan is carried out, and old are the client's rules of before.
func (p *Plan) translate(c Client, servers []Server, old []permission.Rule) {
	of := permission.Client{Name: c.Name, Title: c.Title, HTTP: p.entry.URL != "", Old: old}
	for _, s := range servers {
		if slices.Contains(s.Ken.From, c.Name) {
			of.Servers = append(of.Servers, permission.Server{Name: s.Name, Client: clientName(s)})
		}
	}
	for _, s := range p.Servers {
		of.Moved = append(of.Moved, clientName(s))
	}
	for _, k := range p.Kept {
		of.Kept = append(of.Kept, k.Name)
	}
	made := permission.Translate(of, p.decisions)
	p.Rules, p.Refused = made.Rules, made.Refused
	for _, n := range made.Notes {
		p.note("%s", n)
	}
}

// note adds what a person should know, once.
func (p *Plan) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(p.Notes, n) {
		p.Notes = append(p.Notes, n)
	}
}

// learn reads what a file says about servers besides listing them.
func (b *builder) learn(doc map[string]any, f File) {
	if b.client.Name == "vscode" {
		list, _ := doc["inputs"].([]any)
		for _, item := range list {
			in, _ := fieldsOf(item)
			if id := in.text("id"); id != "" {
				b.inputs[id] = untrusted.Line(cmp.Or(in.text("description"), id), 120)
			}
		}
	}
	if b.client.Name == "codex" && f.Project == "" && b.options.Entry.URL == "" {
		if why := codexInlines(doc, filepath.Join(filepath.Dir(f.Path), "models_cache.json")); why != "" {
			b.plan.Surface = "bridge"
			b.options.Entry.Args = append(slices.Clone(b.options.Entry.args()), "--surface", "bridge")
			b.note("Codex shows its model every tool in every turn, since %s; so it asks Ken for the bridge", why)
		}
	}
	if b.client.Name == "claude" && f.Project == "" && b.options.Project != "" {
		b.approved = map[string]bool{}
		dir, _ := filepath.Abs(b.options.Project)
		projects, _ := doc["projects"].(map[string]any)
		project, _ := fieldsOf(projects[dir])
		for _, name := range project.texts("enabledMcpjsonServers") {
			b.approved[name] = true
		}
	}
}

// Where Gemini CLI and Qwen Code name the servers that may, or may not, be
// used; the later ones are of older versions.
var (
	allowLists = [][]string{{"mcp", "allowed"}, {"allowMCPServers"}}
	denyLists  = [][]string{{"mcp", "excluded"}, {"excludeMCPServers"}}
)

// lists reads which servers the client leaves out, and returns the changes that
// let Ken in.
func (b *builder) lists(doc map[string]any, f File) ([]change, error) {
	b.barred, b.barredIn = func(string) bool { return false }, f.Path
	switch b.client.Name {
	case "gemini", "qwen":
	case "copilot":
		return nil, b.switchedOff(filepath.Join(filepath.Dir(f.Path), "settings.json"))
	default:
		return nil, nil
	}
	var out []change
	var allowed, denied []string
	limited := false
	for _, at := range allowLists {
		if list, ok := listAt(doc, at); ok && len(list) > 0 {
			limited, allowed = true, append(allowed, list...)
			if !slices.Contains(list, "ken") {
				out = append(out, change{at: at, add: "ken"})
			}
		}
	}
	for _, at := range denyLists {
		list, _ := listAt(doc, at)
		denied = append(denied, list...)
	}
	b.barred = func(name string) bool {
		return slices.Contains(denied, name) || limited && !slices.Contains(allowed, name)
	}
	return out, nil
}

// switchedOff reads which servers are switched off in Copilot's settings.
func (b *builder) switchedOff(path string) error {
	if !isThere(path) {
		return nil
	}
	data, _, err := readFile(path)
	if err != nil {
		return err
	}
	doc, err := jsonFormat{}.read(data)
	if err != nil {
		return b.refuse(path, err)
	}
	off, _ := listAt(doc, []string{"disabledMcpServers"})
	b.barredIn = path
	b.barred = func(name string) bool { return slices.Contains(off, name) }
	if b.barred("ken") {
		b.note("ken is switched off in %s: run copilot mcp enable ken", path)
	}
	return nil
}

func (b *builder) note(format string, args ...any) {
	b.plan.note(format, args...)
}

// places returns the tables of a file. Claude Code has one for each project as
// well.
func (b *builder) places(doc map[string]any, f File) []place {
	out := []place{{b.client.at, f.Project}}
	if b.client.Name != "claude" || f.Project != "" {
		return out
	}
	projects, _ := doc["projects"].(map[string]any)
	for _, dir := range slices.Sorted(maps.Keys(projects)) {
		p, _ := projects[dir].(map[string]any)
		if servers, _ := p["mcpServers"].(map[string]any); len(servers) > 0 { // most have an empty one
			out = append(out, place{[]string{"projects", dir, "mcpServers"}, dir})
		}
	}
	return out
}

// place sorts the entries of one table into what moves and what stays.
func (b *builder) place(f File, data []byte, doc map[string]any, p place, main bool) (change, error) {
	c := change{at: p.at, drop: map[string]bool{}}
	entries, err := table(doc, p.at)
	if err != nil {
		return c, err
	}
	lines := b.client.format.lines(data, p.at)
	name := "ken"
	var ours []string
	for _, entry := range b.client.format.names(data, p.at) {
		v := entries[entry]
		if b.client.ours(b.options.Entry, entry, v) {
			ours = append(ours, entry)
			continue
		}
		s, why := b.server(f, p, entry, v, lines[entry])
		if why != "" {
			b.keep(entry, f, p, why)
			if entry == name {
				name = "ken-gateway"
			}
			continue
		}
		c.drop[entry] = true
		b.plan.Servers = append(b.plan.Servers, s)
	}
	if !main {
		return c, nil // Ken's entry of a project is left: it was put there on purpose
	}
	want := b.client.entry(b.options.Entry)
	if len(ours) == 1 && ours[0] == name && len(c.drop) == 0 && printed(asRead(b.client.format, c.at, name, want)) == printed(entries[name]) {
		return c, nil
	}
	for _, entry := range ours {
		c.drop[entry] = true
	}
	c.put = []put{{name: name, value: want}}
	return c, nil
}

// asRead returns an entry as it is read back from a new document.
func asRead(f format, at []string, name string, value pairs) any {
	edits, err := f.edits(nil, []change{{at: at, put: []put{{name: name, value: value}}}})
	if err != nil {
		return nil
	}
	doc, err := f.read(apply(nil, edits))
	if err != nil {
		return nil
	}
	entries, _ := table(doc, at)
	return entries[name]
}

func (b *builder) keep(name string, f File, p place, why string) {
	where := f.Path
	if p.project != "" && f.Project == "" {
		where += " for " + p.project
	}
	b.plan.Kept = append(b.plan.Kept, Kept{untrusted.Line(name, 80), where, why})
}
