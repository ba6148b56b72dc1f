package app

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
	"ken/internal/serve/auth"
	"ken/internal/talk/engine"
	"ken/internal/talk/event"
	"ken/internal/talk/slash"
	"ken/internal/untrusted"
)

// commands are what a person can call by "/name", made once for a snapshot.
type commands struct {
	mu      sync.Mutex
	version uint64
	index   *slash.Index
}

// Commands returns the commands of the catalog as it stands: those that packages
// bring, and every tool that something here runs, under its name. What is
// switched off is among them, so that calling it says so.
func (a *App) Commands() *slash.Index {
	s := a.catalog.Snapshot()
	a.commands.mu.Lock()
	defer a.commands.mu.Unlock()
	if a.commands.index != nil && a.commands.version == s.Version() {
		return a.commands.index
	}
	a.commands.index, a.commands.version = indexOf(all(s, a.own.Snapshot())), s.Version()
	return a.commands.index
}

// CommandsFor returns the commands of a principal. Of others than the person who
// started the program they are only those that they see: a command that is
// hidden from them is none.
func (a *App) CommandsFor(who capability.Principal) *slash.Index {
	if who.ID == a.Principal.ID && who.Tenant == a.Principal.Tenant {
		return a.Commands()
	}
	return commandsIn(a.Door.ViewFor(door.Viewer{Principal: who, Origin: capability.ByPerson}))
}

// CommandsOf returns the commands of a caller over HTTP. An agent has those that
// it sees itself, regardless of the user it works for.
func (a *App) CommandsOf(who auth.Identity) *slash.Index {
	if who.Decides {
		return a.CommandsFor(who.Principal)
	}
	return commandsIn(a.Door.ViewFor(door.Viewer{Principal: who.Principal, Origin: capability.ByModel, Surface: policy.SurfaceAPI}))
}

func commandsIn(view door.View) *slash.Index {
	return view.Keep(commandsKey{}, func() any {
		return indexOf(func(yield func(*door.Entry) bool) {
			for _, list := range []iter.Seq[*door.Entry]{view.All(), view.Own()} {
				for e := range list {
					if !yield(e) {
						return
					}
				}
			}
		})
	}).(*slash.Index) // nothing else is kept under the key
}

type commandsKey struct{}

// NoCommands says why a principal can type no command at all, whatever its name:
// there are no rules, so nothing is allowed. It is nil where there are some.
func (a *App) NoCommands(who capability.Principal) error {
	why := a.noRules(who)
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

// all returns the entries of several snapshots.
func all(list ...*catalog.Snapshot) iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		for _, s := range list {
			for e := range s.All() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Route makes the call that a line of a principal's stands for: "/command action
// arguments".
func (a *App) Route(ctx context.Context, who capability.Principal, line string) (capability.Call, error) {
	return a.route(ctx, who, a.CommandsFor(who), line)
}

// RouteOf is Route for a caller over HTTP.
func (a *App) RouteOf(ctx context.Context, who auth.Identity, line string) (capability.Call, error) {
	return a.route(ctx, who.Principal, a.CommandsOf(who), line)
}

func (a *App) route(ctx context.Context, who capability.Principal, index *slash.Index, line string) (capability.Call, error) {
	route, err := index.Parse(line)
	if err != nil {
		if denied := a.NoCommands(who); denied != nil && !index.Is(line) {
			err = denied
		}
		return capability.Call{}, err
	}
	signature, err := index.Signature(route.Target, func() (json.RawMessage, error) {
		_, detail, err := a.lookup.Find(ctx, route.Target)
		return detail.Schema, err
	})
	if err != nil {
		return capability.Call{}, err
	}
	return route.Call(signature)
}

// slashCommand reads a command. What looks like one and is none that they can
// type is refused, and the model is not asked: it would make something of a line
// that was meant to do something. Paths, and what has a blank before its slash,
// are for the model.
func (a *App) slashCommand(ctx context.Context, in event.Input) (engine.Command, bool, error) {
	index := a.CommandsFor(in.Principal)
	if !index.LooksLike(in.Text) {
		return engine.Command{}, false, nil
	}
	call, err := a.route(ctx, in.Principal, index, in.Text)
	if err != nil {
		if !index.Is(in.Text) {
			err = orForModel(err)
		}
		return engine.Command{}, true, err
	}
	if say, is, err := a.promptOf(ctx, in, call); is {
		return engine.Command{Say: say}, true, err
	}
	return engine.Command{Call: call}, true, nil
}

// promptOf returns the text that a command stands for, where it is one that a
// person says to a model: what follows the command takes the place of
// $ARGUMENTS, or stands below.
func (a *App) promptOf(ctx context.Context, in event.Input, call capability.Call) (string, bool, error) {
	view := a.Door.ViewFor(door.Viewer{Principal: in.Principal, Mode: in.Mode, Origin: capability.ByPerson, Surface: policy.Surface(in.Surface)})
	e, err := view.Lookup(string(call.Target))
	if err != nil || e.Kind != capability.KindCommand || e.Run != nil {
		return "", false, nil
	}
	d, err := a.Door.Describe(ctx, view, string(e.ID))
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

// Completions returns what may stand at the cursor of a line that begins with a
// slash.
func (a *App) Completions(who capability.Principal, line string, cursor int) []slash.Completion {
	return a.CommandsFor(who).Complete(line, cursor)
}
