package policy

import (
	"errors"
	"fmt"
	"regexp"

	"ken/capability"
)

// Settings are everything that rules are made of. Begin with [Defaults]; the
// zero value is the locked profile on an exposed machine with strict intents.
// The pieces are plain data; [Compile] checks them.
type Settings struct {
	Profile    Profile
	Deployment Deployment

	// Intents says whether a model must declare an intent; IntentSurfaces
	// lists where, and nil is everywhere. IntentMap, where it names an intent,
	// replaces the classes that it allows.
	Intents        IntentPolicy
	IntentSurfaces []Surface
	IntentMap      map[Intent][]Class

	Modes map[string]Mode

	// Permissions says what becomes of calls that need a permission and
	// declare it. What is not there is left to the profile.
	Permissions map[Permission]Effect

	// ReadRoots and WriteRoots are the absolute folders besides the workspace
	// that calls may name. Protect and Secrets add to the built-in patterns of
	// files whose writing, or reading, needs consent.
	ReadRoots, WriteRoots []string
	Protect, Secrets      []string

	// SendSecrets lists, by the name of a secret, the ids of capabilities, with
	// * for any part, that may be given its value as an argument although they do
	// not declare it.
	SendSecrets map[string][]string

	// Scope narrows what a model's calls may change. Nil narrows nothing.
	Scope *WriteScope

	// AskAbove and DenyAbove are grades of [Risk]; 100 is never exceeded.
	AskAbove, DenyAbove int

	Access ToolAccess
	Rules  []Rule
	Cedar  []CedarFile
}

// A WriteScope is the set of files that a model may change for the work at
// hand. One without globs is empty.
type WriteScope struct {
	Globs   []string
	Work    []string // ids of the work that owns them
	Where   string   // the file that says so
	Trouble string   // why that file cannot be followed; then the scope is empty
}

// A CedarFile is a policy text of an organisation.
type CedarFile struct {
	Name string
	Text []byte
}

// A Mode limits what calls do while it is on. Groups that are not named are
// refused.
type Mode struct {
	Groups []Group
	Files  *regexp.Regexp // with Globs: what "edit" may touch; both empty means all
	Globs  []string
	Where  string
}

// A Group is a set of tools that a mode lets through.
type Group string

const (
	GroupRead    Group = "read"
	GroupEdit    Group = "edit"
	GroupCommand Group = "command"
	GroupMCP     Group = "mcp"     // MCP tools, and what reaches beyond this machine
	GroupNetwork Group = "network" // what reaches beyond this machine, MCP tools excepted
	GroupModes   Group = "modes"   // always there; named in old files
)

var groupNames = []string{"read", "edit", "command", "mcp", "network", "modes"}

// A Rule is one line of policy. Every list that is not empty narrows it: one of
// its items must apply. Paths, Argv and Hosts are about arguments: a refusal or
// a question applies when any argument matches, a permission when all do. A
// permission with Capabilities and without Trust covers only capabilities that
// are trusted at least as much as the user's own.
type Rule struct {
	ID     string
	Effect Effect
	Scope  Scope // of a question

	Capabilities []string // ids or names, with * for any part
	Except       []string // of Capabilities, those that the rule is not about
	Actions      []string
	Kinds        []string
	Sources      []string
	Classes      []Class
	Trust        []capability.Trust

	Tenants, Roles, Principals []string

	// Agents are the programs that work for the principal, as ken mcp --client
	// and the tokens of agents name them. See [capability.Principal].
	Agents []string

	Modes    []string
	Intents  []Intent
	Origins  []capability.Caller
	Surfaces []Surface

	Paths  []string
	Access string // "read" or "write"; empty is both
	Argv   [][][]string
	Hosts  []string

	// Match and NotMatch are examples of arguments that must and must not
	// match; a rule that fails its own examples is not compiled.
	Match, NotMatch []string

	// Destructive lets a permission cover calls that destroy something.
	Destructive bool

	// Knob is the setting that the rule comes from, for messages. Empty:
	// policy.rules.
	Knob string

	Reason  string
	Instead string
	Where   string // file and line
}

// Defaults returns the settings of a profile.
func Defaults(p Profile) Settings {
	s := Settings{Profile: p, Deployment: LocalOpen, AskAbove: MaxRisk, DenyAbove: MaxRisk, Access: DefaultToolAccess(), Modes: builtinModes()}
	switch p {
	case Personal:
		s.AskAbove = 70
		s.IntentSurfaces = []Surface{"", SurfaceChat, SurfaceRun, SurfaceAPI, SurfaceLibrary}
	case Team:
		s.AskAbove, s.DenyAbove = 50, 90
	case Seed:
	default:
		s.Profile, s.Deployment = Locked, LocalLocked
		s.AskAbove, s.DenyAbove = 30, 70
	}
	return s
}

func builtinModes() map[string]Mode {
	all := []Group{GroupRead, GroupEdit, GroupCommand, GroupMCP}
	return map[string]Mode{
		"code":      {Groups: all, Where: "built in"},
		"debug":     {Groups: all, Where: "built in"},
		"ask":       {Groups: []Group{GroupRead, GroupMCP}, Where: "built in"},
		"architect": {Groups: []Group{GroupRead, GroupEdit, GroupMCP}, Globs: []string{"*.md"}, Where: "built in"},
	}
}

// intentMap is the seed's matrix, told by classes. Meta is always allowed and
// never listed.
func intentMap() map[Intent][]Class {
	return map[Intent][]Class{
		Plan:      nil,
		Analyze:   {Read},
		Debug:     {Read},
		Code:      {Write, Edit},
		WriteFile: {Write},
		ReadFile:  {Read},
		Execute:   {Exec, Network},
	}
}

// Check returns an error if the rule says nothing, says too much, or does not
// do what its own examples say.
func (r *Rule) Check() error {
	_, err := r.check()
	return err
}

// check is [Rule.Check]. It returns the rule's test of arguments, or nil where
// the rule has none.
func (r *Rule) check() (*test, error) {
	t := &test{kind: testArgs, every: r.Effect == Allow, access: r.Access}
	for _, s := range r.Paths {
		g, err := parseGlob(s)
		if err != nil {
			return nil, err
		}
		t.globs = append(t.globs, g)
	}
	for _, words := range r.Argv {
		p := pattern(words)
		if err := p.check(); err != nil {
			return nil, err
		}
		t.argv = append(t.argv, p)
	}
	for _, s := range r.Hosts {
		h, err := parseHost(s)
		if err != nil {
			return nil, err
		}
		t.hosts = append(t.hosts, h)
	}
	none := len(t.globs)+len(t.argv)+len(t.hosts) == 0
	switch {
	case r.ID == "":
		return nil, errors.New("the rule has no id; add one")
	case r.Access != "" && len(t.globs) == 0:
		return nil, errors.New("access applies to paths, and the rule has none; add paths")
	case len(r.Except) > 0 && len(r.Capabilities) == 0:
		return nil, errors.New("except names exceptions from capabilities, and the rule has none; add capabilities")
	case r.Destructive && r.Effect != Allow:
		return nil, errors.New("destructive is valid only with effect: allow; remove it")
	case none && len(r.Match)+len(r.NotMatch) > 0:
		return nil, errors.New("match and notMatch are examples of paths, argv or hosts, and the rule has none; remove them")
	}
	if none {
		return nil, nil
	}
	return t, r.try(t)
}

// try holds the rule against its own examples.
func (r *Rule) try(t *test) error {
	for i, example := range append(append([]string(nil), r.Match...), r.NotMatch...) {
		want := i < len(r.Match)
		got, err := t.matches(example)
		if err != nil {
			return err
		}
		if got != want {
			if want {
				return fmt.Errorf("the example %q should match but does not; fix the rule or the example", example)
			}
			return fmt.Errorf("the example %q should not match but does; fix the rule or the example", example)
		}
	}
	return nil
}

func (t *test) matches(example string) (bool, error) {
	var f Facts
	var s observation
	only := *t
	switch {
	case len(t.argv) > 0:
		p, err := parsePattern(example)
		if err != nil {
			return false, err
		}
		argv := make([]string, len(p))
		for i, w := range p {
			argv[i] = w[0]
		}
		f.Commands = [][]string{argv}
		only.globs, only.hosts = nil, nil
	case len(t.globs) > 0:
		name, trouble := clean(example)
		if trouble != "" {
			return false, errors.New(trouble)
		}
		f.Paths, s.paths = []Path{{Name: name, Write: t.access == "write"}}, []string{name}
		only.hosts = nil
	default:
		f.Hosts = []string{example}
	}
	return only.args(&f, &s), nil
}
