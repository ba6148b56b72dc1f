package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"ken/capability"
	"ken/internal/duration"
)

// WatchConfig says how a Tree notices changes. Zero fields mean the defaults.
type WatchConfig struct {
	// Debounce is the quiet time before a change is read: 500 ms. A tree that
	// never gets quiet is read after five times as long.
	Debounce time.Duration

	// Poll is the interval at which the tree is looked through where the
	// system does not tell of changes: 2 s.
	Poll time.Duration

	// Mode chooses how. Network file systems tell only of what this machine
	// changes; for those choose WatchByPolling.
	Mode WatchMode

	// MaxFolders is the most folders that the system is asked to tell about;
	// a tree with more is polled: 50,000.
	MaxFolders int
}

// A WatchMode is a way to notice changes.
type WatchMode string

const (
	WatchBySystem  WatchMode = ""     // the system tells; polling where it cannot
	WatchByPolling WatchMode = "poll" // the tree is looked through again and again
)

func (c WatchConfig) withDefaults() WatchConfig {
	if c.Debounce <= 0 {
		c.Debounce = 500 * time.Millisecond
	}
	if c.Poll <= 0 {
		c.Poll = 2 * time.Second
	}
	if c.MaxFolders <= 0 {
		c.MaxFolders = 50_000
	}
	return c
}

var _ capability.Watcher = (*Tree)(nil)

// Watch yields a whole new batch after each change that makes a difference,
// once things have been quiet for the debounce time, until ctx ends or the
// caller stops. What changed between Load and Watch counts. Units that did not
// change keep their pointers; one that can no longer be read keeps its last
// good state and says so in the batch. After an error there is a batch as soon
// as the tree can be read again, changed or not.
//
// A Path that is missing, or goes away and comes back, is noticed when it
// appears. While it is missing an optional tree is empty; for any other the
// error says so and the last batch stands.
//
// Where the system cannot tell of changes the tree is polled and the batch has
// a warning with the code "watch-polling". Nothing that Watch started outlives
// it.
func (t *Tree) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		if t.cfg.Files != nil {
			<-ctx.Done() // files of the program do not change
			return
		}
		cfg := t.cfg.Watch.withDefaults()
		ctx, stop := context.WithCancel(ctx)
		seen := make(chan sighting)
		var observer sync.WaitGroup
		observer.Go(func() { t.observe(ctx, cfg, seen) })
		defer observer.Wait()
		defer stop()

		var polling *capability.Problem
		failed := false
		for s := range gather(ctx, seen, cfg.Debounce, 5*cfg.Debounce) {
			b, changed, err := t.refresh(ctx, s)
			if ctx.Err() != nil {
				return
			}
			if s.blind != nil {
				p := t.pollingProblem(s.blind, cfg.Poll)
				polling, changed = &p, true
			}
			if err != nil {
				failed = true
				if !yield(capability.Batch{}, err) {
					return
				}
				continue
			}
			if !changed && !failed {
				continue
			}
			failed = false // a batch says that all is well again
			if polling != nil {
				b.Problems = append(b.Problems, *polling)
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// A sighting tells that something changed.
type sighting struct {
	paths map[string]bool // within the tree, with slashes
	all   bool            // anything may have changed
	blind error           // why the system cannot tell; polling has begun
}

const maxSighted = 10_000 // beyond this many paths, looking through all is cheaper

func (s *sighting) isEmpty() bool { return len(s.paths) == 0 && !s.all && s.blind == nil }

// add takes in that a path changed.
func (s *sighting) add(p string) {
	if s.all {
		return
	}
	if s.paths == nil {
		s.paths = map[string]bool{}
	}
	s.paths[p] = true
	if len(s.paths) > maxSighted {
		s.all, s.paths = true, nil
	}
}

// merge takes in what a later sighting tells.
func (s *sighting) merge(later sighting) {
	if later.blind != nil {
		s.blind = later.blind
	}
	if later.all {
		s.all, s.paths = true, nil
	}
	for p := range later.paths {
		s.add(p)
	}
}

// gather collects sightings and yields them as one when none came for the time
// quiet, or when the first is as old as most. It ends with ctx.
func gather(ctx context.Context, seen <-chan sighting, quiet, most time.Duration) iter.Seq[sighting] {
	return func(yield func(sighting) bool) {
		for {
			var all sighting
			select {
			case <-ctx.Done():
				return
			case s := <-seen:
				all.merge(s)
			}
			if !gatherUntilQuiet(ctx, seen, &all, quiet, most) || !yield(all) {
				return
			}
		}
	}
}

func gatherUntilQuiet(ctx context.Context, seen <-chan sighting, all *sighting, quiet, most time.Duration) bool {
	calm := time.NewTimer(quiet)
	defer calm.Stop()
	latest := time.NewTimer(most)
	defer latest.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case s := <-seen:
			all.merge(s)
			calm.Reset(quiet)
		case <-calm.C:
			return true
		case <-latest.C:
			return true
		}
	}
}

// observe sends what changes until ctx ends: as the system tells it, or by
// polling.
func (t *Tree) observe(ctx context.Context, cfg WatchConfig, out chan<- sighting) {
	first := sighting{all: true} // what changed since Load
	if cfg.Mode != WatchByPolling {
		first.blind = t.listen(ctx, cfg, out)
		if ctx.Err() != nil {
			return
		}
	}
	poll(ctx, t, cfg, first, out)
}

// errTooManyFolders is the reason for polling a tree that is too large.
var errTooManyFolders = errors.New("too many folders to watch each of them")

func (t *Tree) pollingProblem(cause error, every time.Duration) capability.Problem {
	fix := "nothing is lost; changes only take that long to be seen"
	switch {
	case errors.Is(cause, syscall.ENOSPC):
		fix = "raise the limit fs.inotify.max_user_watches, or name smaller folders"
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		fix = "raise the limit of open files, or fs.inotify.max_user_instances"
	case errors.Is(cause, errTooManyFolders):
		fix = "name smaller folders"
	}
	if errors.Is(cause, fsnotify.ErrClosed) {
		cause = errors.New("the system stopped telling")
	}
	return capability.Problem{
		Severity: capability.Warning, Code: "watch-polling",
		Origin:  capability.Origin{Source: t.cfg.Name, Location: capability.Local, Path: t.cfg.Path},
		Message: fmt.Sprintf("changes are looked for every %s, because the system cannot tell of them: %v", duration.Text(every), cause),
		Fix:     fix,
	}
}
