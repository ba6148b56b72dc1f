package app

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/wholefile"
)

// serversEvery is how often the files that name servers are looked at.
const serversEvery = time.Second

// watchServers takes over what the files say of servers while it runs, and
// notes for the doctor how they stand. An App whose servers are another's reads
// the files too: which servers are for its folder is in them.
func (a *App) watchServers(ctx context.Context) {
	if a.gateway == nil {
		return
	}
	look := func() {}
	if !a.shared {
		notes := newNotebook(a.serverNotes())
		defer notes.close()
		var wrong error
		look = func() {
			if err := notes.look(a.gateway.Status()); err != nil && wrong == nil {
				wrong = err // once is enough
				a.log.Warn("the doctor will not see how MCP servers stand", "error", err)
			}
		}
	}
	sealed := a.secrets.Changes()
	known := map[string]bool{}
	for _, p := range a.Reading {
		known[p.Name] = true
	}
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		look()
		// The sources before the files: what is in them was in the files
		// already, so that none is taken for one of every folder.
		sources := a.gateway.Sources()
		changed := a.rereadServers(ctx)
		if now := a.secrets.Changes(); now != sealed {
			sealed, changed = now, true
		}
		if changed && !a.shared {
			a.gateway.TryAgain()
		}
		a.addSources(ctx, known, a.forHere(sources))
	}
}

// machineEvery is how often the catalog looks at the machine, whatever is told
// of it.
const machineEvery = 30 * time.Second

// watchMachine lets the catalog look again at what is here: soon after a secret
// was set, by whichever process, and every so often for what nobody tells, a
// program that was installed or a secret that was removed.
func (a *App) watchMachine(ctx context.Context, every time.Duration) {
	sealed, looked := a.secrets.Changes(), time.Now()
	a.catalog.LookAgain() // what came since it was loaded
	tick := time.NewTicker(min(every, serversEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := a.secrets.Changes(); now != sealed || time.Since(looked) >= every {
			sealed, looked = now, time.Now()
			a.catalog.LookAgain()
		}
	}
}

// rereadServers takes over the files that name servers where they changed, or
// what people said of them, and reports whether they did.
func (a *App) rereadServers(ctx context.Context) bool {
	a.serving.mu.Lock()
	said, files := a.serving.said, a.serving.files
	a.serving.mu.Unlock()
	if said == a.effective() && !slices.ContainsFunc(files, func(m wholefile.Stamp) bool { return !m.Same(wholefile.StampOf(m.Path)) }) && !a.definitionsChanged(ctx) {
		return false
	}
	if list := a.servers(); !a.shared {
		a.gateway.Replace(list)
	}
	return true
}

// definitionsChanged reports whether the pins of definitions that wait changed
// since they were checked.
func (a *App) definitionsChanged(ctx context.Context) bool {
	a.serving.mu.Lock()
	judged := maps.Clone(a.serving.judged)
	a.serving.mu.Unlock()
	for file, was := range judged {
		if now := a.definitions.Revision(ctx, file); now != was || now == definitions.UnknownRevision {
			return true
		}
	}
	return false
}

// addSources adds those that are not known yet to the catalog.
func (a *App) addSources(ctx context.Context, known map[string]bool, list []capability.Source) {
	for _, s := range list {
		if known[s.Name()] {
			continue
		}
		known[s.Name()] = true
		if err := a.catalog.Add(ctx, s); err != nil && ctx.Err() == nil {
			a.log.Warn("an MCP server cannot be listed", "source", s.Name(), "error", err)
		}
	}
}

// serverFiles is the source of what is wrong with the files that name servers.
// It brings nothing else.
type serverFiles struct {
	app  *App
	name string
}

var _ capability.Watcher = serverFiles{}

// Name is that of the source.
func (s serverFiles) Name() string { return s.name }

// Load returns the problems there are.
func (s serverFiles) Load(context.Context) (capability.Batch, error) {
	return capability.Batch{Problems: s.app.ServerProblems()}, nil
}

// Watch yields the problems again whenever the files were read again.
func (s serverFiles) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		had := s.app.ServerProblems()
		for {
			s.app.serving.mu.Lock()
			reread, now := s.app.serving.reread, slices.Clone(s.app.serving.wrong)
			s.app.serving.mu.Unlock()
			if !slices.Equal(had, now) {
				had = now
				if !yield(capability.Batch{Problems: now}, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-reread:
			}
		}
	}
}
