// Package shared keeps the settings that all replicas have in common. They are one
// document in the store, which counts as the user's own words and goes over their
// ken.yaml. Each replica has a copy of it in its state folder, which package config
// reads.
//
// A replica that cannot know whether its copy is current must allow nothing:
// [Settings.Check] says so. It also says when the store is older than what this
// machine has seen of it, as after a restore: then it is not known which grants were
// revoked since, and which calls were made. The machine that notices says so in the
// store, so that replicas that have seen nothing stop too: see [Settings.Accept].
package shared

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/wholefile"
)

// prefix is of all that the store has of them; key is the document.
const prefix = "shared/"

func key() string { return store.Key("shared", "settings") }

// restoredKey is there while the store counts as put back to an earlier state, and
// acceptedKey says when an operator last accepted that.
func restoredKey() string { return store.Key("shared", "restored") }
func acceptedKey() string { return store.Key("shared", "accepted") }

// A setback is what a machine noticed of a store that was put back.
type setback struct {
	Host string    `json:"host"`
	Time time.Time `json:"time"`
	Head int64     `json:"head"` // of the store
	Seen int64     `json:"seen"` // by the machine
}

const (
	// maxAge is how long one look at the store is good for.
	maxAge = 500 * time.Millisecond

	// patience is how long the store may take to answer before nothing is allowed.
	patience = 5 * time.Second

	// seenEvery is how often it is written down how far the store had come.
	seenEvery = 5 * time.Second
)

// A Config says where the document and its copy are. All of it is needed.
type Config struct {
	Store func() (*store.Store, error)
	File  string // the copy
	Seen  string // a file that says how far the store had come
	Log   *slog.Logger
}

// Settings are the shared settings as one process follows them. Its methods are safe
// for concurrent use.
type Settings struct {
	cfg   Config
	epoch time.Time
	asked atomic.Int64 // since epoch, when the last look began that found the copy current

	mu      sync.Mutex // held during a look
	loaded  bool
	version int64     // up to which changes were read
	head    int64     // how far the store had come
	written int64     // what Seen says
	noted   time.Time // when that was written
}

// New returns settings that nothing is known of yet.
func New(cfg Config) *Settings {
	s := &Settings{cfg: cfg, epoch: time.Now()}
	s.asked.Store(int64(-time.Hour))
	return s
}

// Check returns nil if the copy was current at most half a second ago. Otherwise it
// asks the store, and returns why that cannot be known.
func (s *Settings) Check() error {
	if s.fresh() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.look(ctx, false)
}

func (s *Settings) fresh() bool { return s.Age() < maxAge }

// Age is how long ago the settings were last known to be those of the store.
func (s *Settings) Age() time.Duration { return time.Since(s.epoch) - time.Duration(s.asked.Load()) }

// Update makes the copy current.
func (s *Settings) Update(ctx context.Context) error { return s.look(ctx, true) }

func (s *Settings) look(ctx context.Context, always bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !always && s.fresh() { // another goroutine has looked meanwhile
		return nil
	}
	began := time.Since(s.epoch)
	err := s.read(ctx)
	if err != nil {
		s.loaded = false // what others did meanwhile is not known
		if e, ok := errors.AsType[*capability.Error](err); ok {
			return e
		}
		return &capability.Error{
			Kind: capability.Unavailable, Op: "read", Target: "shared settings", Err: err,
			Fix: "this replica cannot know whether its rules are current, so it allows no call; see that the store can be reached",
		}
	}
	s.asked.Store(int64(began))
	return nil
}

func (s *Settings) read(ctx context.Context) error {
	db, err := s.cfg.Store()
	if err != nil {
		return err
	}
	if !s.loaded {
		s.recall()
	}
	head, changes, err := db.Since(ctx, prefix, s.version)
	if err != nil {
		return err
	}
	if head < s.head {
		b := s.report(ctx, db, head)
		return s.restored(b)
	}
	if !s.loaded || len(changes) > 0 {
		items, err := db.GetAll(ctx, key(), restoredKey()) // they may be newer than head, which does no harm
		if item, ok := items[restoredKey()]; ok {
			var b setback
			_ = json.Unmarshal(item.Value, &b) // that it is there is enough
			return s.restored(b)               // and ask again next time
		}
		if err == nil {
			err = s.copy(items[key()].Value)
		}
		if err != nil {
			return err
		}
	}
	s.loaded, s.version, s.head = true, head, head
	s.note()
	return nil
}

// copy makes the file say what the store does.
func (s *Settings) copy(text []byte) error {
	have, err := os.ReadFile(s.cfg.File)
	switch {
	case len(text) == 0 && errors.Is(err, fs.ErrNotExist):
		return nil
	case len(text) == 0:
		return os.Remove(s.cfg.File)
	case err == nil && bytes.Equal(have, text):
		return nil
	}
	return wholefile.Write(s.cfg.File, text, 0o600)
}

// recall reads how far the store had come when a process of this machine last looked.
// Without the file that is unknown.
func (s *Settings) recall() {
	text, err := os.ReadFile(s.cfg.Seen)
	if err != nil {
		return
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		s.head = max(s.head, n)
		s.written = s.head
	}
}

func (s *Settings) note() {
	if s.head <= s.written || time.Since(s.noted) < seenEvery {
		return
	}
	s.noted = time.Now()
	if err := wholefile.Write(s.cfg.Seen, []byte(strconv.FormatInt(s.head, 10)+"\n"), 0o600); err != nil {
		s.cfg.Log.Warn("how far the store had come is not written down", "file", s.cfg.Seen, "error", err)
		return
	}
	s.written = s.head
}

// report says in the store that it was put back, and how far it had come: the farthest
// that any machine has seen. A store that cannot be written stops the other replicas by
// itself.
func (s *Settings) report(ctx context.Context, db *store.Store, head int64) setback {
	host, _ := os.Hostname() // it is for people
	mine := setback{Host: host, Time: time.Now().UTC(), Head: head, Seen: s.head}
	item, there, err := db.Get(ctx, restoredKey())
	var known setback
	if err != nil || there && json.Unmarshal(item.Value, &known) == nil && known.Seen >= mine.Seen {
		return mine
	}
	text, err := json.Marshal(mine)
	if err == nil {
		var b store.Batch
		b.At(restoredKey(), item.Version)
		b.Put(restoredKey(), text)
		b.Past(head)
		_, err = db.Apply(ctx, &b)
	}
	if err != nil {
		s.cfg.Log.Warn("other replicas are not told that the store was put back", "error", err)
	}
	return mine
}

func (s *Settings) restored(b setback) error {
	by := "this machine"
	if b.Seen != s.head {
		by = b.Host
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "read", Target: "shared settings", Rule: "store.restored",
		Err: fmt.Errorf("the store was put back to an earlier state: it was at version %d, and %s has seen version %d", b.Head, by, b.Seen),
		Fix: "restore a newer backup; or, if calls that were made since may run again and grants that were revoked since may count again, run ken doctor --cluster --accept-restore and restart Ken on every machine",
	}
}

// Accept accepts for all machines that the store was put back to an earlier state, so
// that it counts again. Versions continue after the last one that any machine is known
// to have seen.
func (s *Settings) Accept(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall()
	db, err := s.cfg.Store()
	if err != nil {
		return err
	}
	head, _, err := db.Since(ctx, prefix, 0)
	if err != nil {
		return err
	}
	item, there, err := db.Get(ctx, restoredKey())
	if err != nil {
		return err
	}
	var b setback
	_ = json.Unmarshal(item.Value, &b) // that it is there is enough
	if !there && head >= s.head {
		return &capability.Error{Kind: capability.Invalid, Op: "accept", Target: "the store's state", Err: errors.New("no machine has noticed that the store was put back to an earlier state"), Fix: "there is nothing to accept; leave out --accept-restore"}
	}
	text, err := json.Marshal(setback{Host: b.Host, Time: time.Now().UTC(), Head: head, Seen: max(b.Seen, s.head)})
	if err != nil {
		return err
	}
	var batch store.Batch
	batch.At(restoredKey(), item.Version)
	batch.Delete(restoredKey())
	batch.Put(acceptedKey(), text)
	batch.Past(max(b.Seen, s.head))
	_, err = db.Apply(ctx, &batch)
	return err
}

// Watch keeps the copy current until ctx ends: as soon as the store tells of a change,
// and by asking about twice a second.
func (s *Settings) Watch(ctx context.Context) {
	var told sync.WaitGroup
	told.Go(func() { s.listen(ctx) })
	defer told.Wait()
	tick := time.NewTicker(maxAge - 100*time.Millisecond)
	defer tick.Stop()
	var last string
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		err := s.look(asking, false)
		cancel()
		if said := fmt.Sprint(err); said != last && ctx.Err() == nil {
			if last = said; err != nil {
				s.cfg.Log.Error("no call is allowed here", "why", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// listen looks at once when a change is told.
func (s *Settings) listen(ctx context.Context) {
	for ctx.Err() == nil {
		db, err := s.cfg.Store()
		if err == nil {
			for _, err = range db.Watch(ctx, prefix, store.FromNow) {
				if err != nil {
					break
				}
				_ = s.Update(ctx) // Watch tells what fails
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Change changes the document: edit is given a file with its text, which may be empty,
// and changes that. It fails with capability.Conflict if another process changed the
// document meanwhile.
func (s *Settings) Change(ctx context.Context, edit func(file string) error) error {
	db, err := s.cfg.Store()
	if err != nil {
		return err
	}
	item, _, err := db.Get(ctx, key())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(s.cfg.File), "shared-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, filepath.Base(s.cfg.File))
	if err := os.WriteFile(file, item.Value, 0o600); err != nil {
		return err
	}
	if err := edit(file); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b store.Batch
	b.At(key(), item.Version)
	if len(bytes.TrimSpace(text)) == 0 {
		b.Delete(key())
	} else {
		b.Put(key(), text)
	}
	if _, err := db.Apply(ctx, &b); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return &capability.Error{Kind: capability.Conflict, Op: "change", Target: "shared settings", Err: errors.New("another process changed them meanwhile"), Fix: "look at them and try again"}
		}
		return err
	}
	return s.Update(ctx)
}
