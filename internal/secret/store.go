package secret

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
)

// Config says where secrets are.
type Config struct {
	// Dir holds secrets.age and secrets.key. It is made with the first secret.
	Dir string

	// Environ is the environment as os.Environ gives it. Nil means that there
	// is none.
	Environ []string
}

const (
	storeFile = "secrets.age"
	keyFile   = "secrets.key"
	lockFile  = "secrets.lock"
)

// A Store holds secret values by name. It is safe for concurrent use;
// several processes may share the files. What another process set is seen by
// the next call.
type Store struct {
	dir string
	env map[string]string

	mu      sync.Mutex
	stamp   stamp            // of the file as it was read
	secrets map[string]entry // by name; what the file holds
	held    map[string]held  // by value; all that may not be written anywhere
	changes uint64
}

type entry struct {
	Value string    `json:"value"`
	Set   time.Time `json:"set"`
}

type held struct {
	names []string // at least one, in the order in which they came
	value Value
}

// New makes a Store. It reads no file, so it does not fail; the values of
// variables whose names speak of a secret are held from the start.
func New(cfg Config) *Store {
	s := &Store{dir: cfg.Dir, env: map[string]string{}, held: map[string]held{}}
	for _, line := range cfg.Environ {
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			continue
		}
		s.env[name] = value
		if speaksOfSecret(name) {
			s.hold("env:"+name, Of(value))
		}
	}
	return s
}

var (
	goodName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`) })
	secretWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|APIKEY|PAT|DSN|AUTH|COOKIE)(_|$)`)
	})
)

// speaksOfSecret: GITHUB_TOKEN does, KEYBOARD and PATH do not.
func speaksOfSecret(name string) bool {
	return secretWord().MatchString(name) && !strings.HasSuffix(name, "_FILE") && name != "SSH_AUTH_SOCK"
}

// CheckName reports what is wrong with the name of a secret, if anything.
func CheckName(name string) error { return checkName("set secret", name) }

func checkName(op, name string) error {
	if goodName().MatchString(name) {
		return nil
	}
	// The name is not repeated: people type the value in its place.
	return &capability.Error{
		Kind: capability.Invalid, Op: op, Err: errors.New("invalid name of a secret"),
		Fix: "use letters, digits, _, - and ., beginning with a letter, as in GITHUB_TOKEN",
	}
}

// hold makes a value known to the redactor. The caller has the lock, or the
// Store for itself.
func (s *Store) hold(name string, v Value) {
	if v.Empty() {
		return
	}
	h, known := s.held[v.Reveal()]
	if !known {
		h.value = v
	}
	if !slices.Contains(h.names, name) {
		h.names = append(h.names, name)
		s.held[v.Reveal()] = h
		s.changes++
	}
}

// Lookup finds the value of a name: that of the environment, or else that of
// the file. It fails with capability.NotFound where there is none.
func (s *Store) Lookup(name string) (Value, error) {
	if err := checkName("look up secret", name); err != nil {
		return Value{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := Of(s.env[name]); !v.Empty() {
		s.hold("env:"+name, v)
		return v, nil
	}
	return s.stored(name)
}

// stored finds a name in the file.
func (s *Store) stored(name string) (Value, error) {
	if err := s.refresh(); err != nil {
		return Value{}, err
	}
	e, ok := s.secrets[name]
	if !ok {
		return Value{}, &capability.Error{
			Kind: capability.NotFound, Op: "look up secret", Target: name,
			Err: errors.New("secret not found"), Fix: "ken secret set " + name,
		}
	}
	return Of(e.Value), nil
}

// Has reports whether a name has a value. A store that cannot be read has
// none.
func (s *Store) Has(name string) bool {
	v, err := s.Lookup(name)
	return err == nil && !v.Empty()
}

// Set stores a value under a name in the file. It takes a Value, which callers
// read from somewhere else than the command line.
func (s *Store) Set(name string, v Value) error {
	if err := checkName("set secret", name); err != nil {
		return err
	}
	if err := v.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(name, v) // before anything can fail and be reported
	return s.change(func(secrets map[string]entry) error {
		secrets[name] = entry{Value: v.Reveal(), Set: time.Now().UTC().Truncate(time.Second)}
		return nil
	})
}

// Remove takes a name out of the file. Its value stays known to the redactor
// as long as the process lives.
func (s *Store) Remove(name string) error {
	if err := checkName("remove secret", name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(func(secrets map[string]entry) error {
		if _, ok := secrets[name]; !ok {
			return &capability.Error{
				Kind: capability.NotFound, Op: "remove secret", Target: name,
				Err: errors.New("secret not found"), Fix: "ken secret list shows what there is",
			}
		}
		delete(secrets, name)
		return nil
	})
}

// An Item is one secret of the file, without its value.
type Item struct {
	Name string    `json:"name"`
	Set  time.Time `json:"set"`

	// Shadowed means that a variable of this name comes first.
	Shadowed bool `json:"shadowed,omitempty"`

	// Unguarded says why the redactor does not look for the value; empty when
	// it does.
	Unguarded string `json:"unguarded,omitempty"`
}

// List returns the secrets of the file by name.
func (s *Store) List() ([]Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, err
	}
	var out []Item
	for name, e := range s.secrets {
		out = append(out, Item{Name: name, Set: e.Set, Shadowed: s.env[name] != "", Unguarded: unguarded(e.Value)})
	}
	coldsort.By(out, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// unguarded says why a value is not looked for in what is written.
func unguarded(value string) string {
	if len(value) < Shortest {
		return fmt.Sprintf("it is shorter than %d characters, so that hiding it would hide ordinary words; use a longer one", Shortest)
	}
	return ""
}

// Values returns every value that may not be written anywhere, longest first, once
// for each of its names: those of the file, those that were looked up, and those
// of variables whose names speak of a secret. A name is that of the file, or a
// reference as in env:NAME or file:PATH; it is empty for a text that only has a
// secret in it. Values that
// are too short are left out; [Store.Unguarded] names them. When the file
// cannot be read its values are missing, and nothing can use them either;
// [Store.Check] says why.
func (s *Store) Values() iter.Seq2[string, Value] {
	s.mu.Lock()
	_ = s.refresh() // [Store.Check] tells; what is held is still good
	all := make([]held, 0, len(s.held))
	for _, h := range s.held {
		if unguarded(h.value.Reveal()) == "" {
			all = append(all, h)
		}
	}
	s.mu.Unlock()
	coldsort.By(all, func(a, b held) int {
		if n := len(b.value.Reveal()) - len(a.value.Reveal()); n != 0 {
			return n
		}
		return strings.Compare(a.names[0], b.names[0])
	})
	return func(yield func(string, Value) bool) {
		for _, h := range all {
			for _, name := range h.names {
				if !yield(name, h.value) {
					return
				}
			}
		}
	}
}

// Changes is a number that grows whenever [Store.Values] may give more than
// before, so that a redactor knows when to look again.
func (s *Store) Changes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.refresh() // as in Values
	return s.changes
}

// Unguarded names the held values that [Store.Values] leaves out, each with
// the reason.
func (s *Store) Unguarded() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for _, h := range s.held {
		if reason := unguarded(h.value.Reveal()); reason != "" {
			for _, name := range h.names {
				if name != "" {
					out[name] = reason
				}
			}
		}
	}
	return out
}

// Check reads the file and says what is wrong with it or with the key. No file
// is right.
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = stamp{}
	return s.refresh()
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// refresh reads the file when it changed since the last time. The caller has
// the lock.
func (s *Store) refresh() error {
	if s.dir == "" {
		return nil
	}
	now, err := stampOf(s.path(storeFile))
	if errors.Is(err, os.ErrNotExist) {
		s.secrets, s.stamp = nil, stamp{}
		return nil
	}
	if err != nil {
		return s.broken(err, "see that it can be read")
	}
	if now == s.stamp {
		return nil
	}
	secrets, err := s.read()
	if err != nil {
		return err
	}
	s.secrets, s.stamp = secrets, now
	for name, e := range secrets {
		s.hold(name, Of(e.Value))
	}
	return nil
}
