// Package commands lists the slash commands of a caller and turns a line that was
// typed into a call.
package commands

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source/mcptools"
	"ken/internal/talk/event"
	"ken/internal/talk/slash"
	"ken/internal/untrusted"
)

// Config says what a Set works with. All fields are required.
type Config struct {
	Catalog *catalog.Catalog
	Own     *catalog.Catalog // the tools that are part of the program
	Door    *door.Door
	Owner   capability.Principal // the person who started the program

	// NoRules says why there are no rules, as far as a principal may know it. It
	// returns nil where there are some.
	NoRules func(capability.Principal) error

	// Lookup returns a capability with the schema of its arguments.
	Lookup func(context.Context, capability.ID) (*capability.Capability, capability.Detail, error)
}

// A Set is the commands that can be typed. It may be used from any number of
// goroutines.
type Set struct {
	cfg Config

	mu      sync.Mutex // guards what follows
	version uint64     // of the catalog that index was made of
	index   *slash.Index
}

// New returns a Set.
func New(cfg Config) *Set { return &Set{cfg: cfg} }

// A Caller is who types a command.
type Caller struct {
	Principal capability.Principal
	Agent     bool // a program that works for the principal and decides nothing for them
}

// All returns the commands of the owner: those that packages bring, and every
// tool that something here runs, under its name. What is switched off is among
// them, so that calling it says so.
func (s *Set) All() *slash.Index {
	snapshot := s.cfg.Catalog.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil || s.version != snapshot.Version() {
		s.index, s.version = indexOf(chain(snapshot.All(), s.cfg.Own.Snapshot().All())), snapshot.Version()
	}
	return s.index
}

// For returns the commands of a caller. Anybody but the owner has only those that
// they see: a command that is hidden from them is none. An agent has those that
// it sees itself, regardless of the person it works for.
func (s *Set) For(who Caller) *slash.Index {
	p := who.Principal
	if who.Agent {
		return commandsIn(s.cfg.Door.ViewFor(door.Viewer{Principal: p, Origin: capability.ByModel, Surface: policy.SurfaceAPI}))
	}
	if p.ID == s.cfg.Owner.ID && p.Tenant == s.cfg.Owner.Tenant {
		return s.All()
	}
	return commandsIn(s.cfg.Door.ViewFor(door.Viewer{Principal: p, Origin: capability.ByPerson}))
}

type viewKey struct{}

func commandsIn(view door.View) *slash.Index {
	return view.Keep(viewKey{}, func() any {
		return indexOf(chain(view.All(), view.Own()))
	}).(*slash.Index) // nothing else is kept under the key
}

// Denied says why a principal can run no command at all, whatever its name: there
// are no rules, so nothing is allowed. It returns nil where there are some.
func (s *Set) Denied(who capability.Principal) error {
	why := s.cfg.NoRules(who)
	if why == nil {
		return nil
	}
	return &capability.Error{
		Kind: capability.Denied, Op: "run the command", Rule: "no-rules",
		Err: errors.New("there are no rules, so nothing is allowed: " + untrusted.Line(why.Error(), 500)), Fix: "ken doctor says where",
	}
}

// indexOf returns the commands among entries.
func indexOf(entries iter.Seq[*catalog.Entry]) *slash.Index {
	var list []*capability.Capability
	var tools []slash.Command
	seen := map[capability.ID]bool{} // the program's own tools are in two lists
	for e := range entries {
		twice := seen[e.ID]
		seen[e.ID] = true
		switch {
		case twice, e.State != catalog.Active:
		case e.Kind == capability.KindCommand:
			list = append(list, e.Capability)
		case e.Run != nil:
			tool := slash.Command{
				Name: e.Name, Summary: e.Description, Trust: e.Trust, Tool: true,
				Actions: []slash.Action{{Target: e.ID, Description: e.Description, Runner: e.Run.Runner, Unavailable: e.Unavailable}},
			}
			if e.Trust == capability.TrustBuiltin {
				tool.Aliases = e.Aliases // its former names
			}
			if e.Origin.Format == mcptools.Format {
				tool.Server = true
				tool.Extension, _, _ = strings.Cut(strings.TrimPrefix(string(e.ID), "mcp:"), "/")
			}
			tools = append(tools, tool)
		}
	}
	return slash.New(append(slash.Commands(list, nil), tools...))
}

// chain returns the entries of several lists.
func chain(lists ...iter.Seq[*catalog.Entry]) iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		for _, list := range lists {
			for e := range list {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Route makes the call that a caller's line stands for: "/command action
// arguments".
func (s *Set) Route(ctx context.Context, who Caller, line string) (capability.Call, error) {
	return s.route(ctx, who.Principal, s.For(who), line)
}

func (s *Set) route(ctx context.Context, who capability.Principal, index *slash.Index, line string) (capability.Call, error) {
	route, err := index.Parse(line)
	if err != nil {
		if denied := s.Denied(who); denied != nil && !index.Is(line) {
			err = denied
		}
		return capability.Call{}, err
	}
	signature, err := index.Signature(route.Target, func() (json.RawMessage, error) {
		_, detail, err := s.cfg.Lookup(ctx, route.Target)
		return detail.Schema, err
	})
	if err != nil {
		return capability.Call{}, err
	}
	return route.Call(signature)
}

// Read reads a command of a turn. It reports false for a text that is meant for
// the model: a path, or a text with a blank before its slash. What looks like a
// command and is none that they can type is refused, and the model is not asked:
// the line was meant to do something, and a model would only guess at it.
func (s *Set) Read(ctx context.Context, in event.Input) (event.Command, bool, error) {
	index := s.For(Caller{Principal: in.Principal})
	if !index.LooksLike(in.Text) {
		return event.Command{}, false, nil
	}
	call, err := s.route(ctx, in.Principal, index, in.Text)
	if err != nil {
		if !index.Is(in.Text) {
			err = orForModel(err)
		}
		return event.Command{}, true, err
	}
	if say, is, err := s.prompt(ctx, in, call); is {
		return event.Command{Say: say}, true, err
	}
	return event.Command{Call: call}, true, nil
}

// prompt returns the text that a command stands for, where it is one that a
// person says to a model: what follows the command takes the place of
// $ARGUMENTS, or stands below.
func (s *Set) prompt(ctx context.Context, in event.Input, call capability.Call) (string, bool, error) {
	view := s.cfg.Door.ViewFor(door.Viewer{Principal: in.Principal, Mode: in.Mode, Origin: capability.ByPerson, Surface: policy.Surface(in.Surface)})
	e, err := view.Lookup(string(call.Target))
	if err != nil || e.Kind != capability.KindCommand || e.Run != nil {
		return "", false, nil
	}
	d, err := s.cfg.Door.Describe(ctx, view, string(e.ID))
	if err != nil {
		return "", true, err
	}
	_, rest, _ := strings.Cut(strings.TrimSpace(in.Text), " ")
	body := strings.TrimSpace(d.Detail.Body)
	switch {
	case body == "":
		return "", false, nil
	case strings.Contains(body, "$ARGUMENTS"):
		return strings.ReplaceAll(body, "$ARGUMENTS", rest), true, nil
	case rest != "":
		return body + "\n\n" + rest, true, nil
	}
	return body, true, nil
}

// orForModel adds to why a line is no command how it is said to the model.
func orForModel(err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok {
		return err
	}
	told := *e
	if told.Fix != "" && !strings.HasSuffix(told.Fix, "?") {
		told.Fix += ";"
	}
	told.Fix = strings.TrimSpace(told.Fix + " " + slash.ForModel)
	return &told
}
