package shared

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

func machine(t *testing.T, db *store.Store) (*Settings, Config) {
	t.Helper()
	dir := t.TempDir()
	cfg := Config{
		Store: func() (*store.Store, error) { return db, nil }, File: filepath.Join(dir, "shared.yaml"), Seen: filepath.Join(dir, "store.seen"),
		Log: slog.New(slog.DiscardHandler),
	}
	return New(cfg), cfg
}

func write(text string) func(string) error {
	return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
}

// TestShared: what one machine shares another has, also that it is gone.
func TestShared(t *testing.T) {
	db := storetest.Open(t, storetest.Address(t))
	one, _ := machine(t, db)
	two, at := machine(t, db)
	for _, text := range []string{"policy: {}\n", "policy: {profile: team}\n", ""} {
		if err := errors.Join(one.Change(t.Context(), write(text)), two.Update(t.Context())); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(at.File)
		if string(got) != text || (text == "") != errors.Is(err, os.ErrNotExist) {
			t.Errorf("the other machine has %q, %v; want %q", got, err, text)
		}
	}
	refused := errors.New("no such key")
	if err := one.Change(t.Context(), func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("Change = %v, want the error of the edit", err)
	}
	if err := one.Change(t.Context(), func(file string) error {
		if err := two.Change(t.Context(), write("b: 1\n")); err != nil {
			t.Fatal(err)
		}
		return os.WriteFile(file, []byte("a: 1\n"), 0o600)
	}); capability.KindOf(err) != capability.Conflict {
		t.Errorf("two changes at once: %v, want a conflict", err)
	}
}

// TestAway: without the store nothing is known to be current, once the last look is old.
func TestAway(t *testing.T) {
	db := storetest.Open(t, storetest.Address(t))
	s, _ := machine(t, db)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := s.Check(); err != nil {
		t.Errorf("Check = %v directly after a look", err)
	}
	s.asked.Store(int64(-maxAge))
	if err := s.Check(); capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "allows no call") {
		t.Errorf("Check = %v, want unavailable", err)
	}
}

// TestRestored: a store that is older than it was is refused, by a new process and by
// other machines too, until an operator accepts it.
func TestRestored(t *testing.T) {
	old := storetest.Open(t, storetest.Address(t))
	s, cfg := machine(t, old)
	if err := errors.Join(s.Change(t.Context(), write("a: 1\n")), s.Update(t.Context())); err != nil {
		t.Fatal(err)
	}
	restored := storetest.Open(t, storetest.Address(t)) // at version 0
	cfg.Store = func() (*store.Store, error) { return restored, nil }
	fresh, _ := machine(t, restored) // is told by the store
	again := New(cfg)
	for _, s := range []*Settings{again, again, New(cfg), fresh} {
		var e *capability.Error
		if err := s.Check(); !errors.As(err, &e) || e.Rule != "store.restored" {
			t.Fatalf("Check = %v, want store.restored", err)
		}
	}
	if text, err := os.ReadFile(cfg.File); err != nil || string(text) != "a: 1\n" {
		t.Errorf("the copy is %q, %v", text, err)
	}
	if err := fresh.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Settings{again, fresh, New(cfg)} {
		if err := s.Check(); err != nil {
			t.Errorf("after an operator accepted it: %v", err)
		}
	}
	if err := fresh.Accept(t.Context()); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Accept without a reason = %v, want invalid", err)
	}
}
