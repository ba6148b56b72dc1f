// Package replica lets several ken serve work as one. Each announces itself in the
// store, with hashes of the tokens that it takes and the public key of what it signs, so
// that the others take them too. Nothing that is stored opens anything: who can read the
// store, or a backup of it, can neither sign in nor forge a cookie.
//
//	replica/name        a name for all of them together
//	replica/live/ID     a replica that runs; expires soon after it stopped
//	replica/key/HOME    the public key of a state folder
//	replica/token/SUM   a token that a state folder has, by its SHA-256
//	replica/gone/SUM    a token that was removed, wherever its file still is
package replica

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/duration"
	"ken/internal/store"
	"ken/internal/wholefile"
)

const (
	prefix = "replica/"

	// beat is how often a replica says that it runs, and life how long that is kept.
	// One that was silent for silence, while this one was heard, is lost.
	beat    = 2 * time.Second
	life    = 20 * time.Second
	silence = 8 * time.Second

	// keep is how long tokens and keys of a replica count that no longer runs, and
	// goneFor how long it is known that a token was removed.
	keep    = 30 * 24 * time.Hour
	goneFor = 365 * 24 * time.Hour

	// again is how often tokens and keys are written again that did not change.
	again = 24 * time.Hour

	// glance is how often a replica looks whether its tokens changed.
	glance = 500 * time.Millisecond

	// storeTime is how long the store may take to be told something, and joinTime for
	// all that a start needs: a store that is slow for a while must not end a start.
	storeTime = 10 * time.Second
	joinTime  = time.Minute
)

func nameKey() string            { return store.Key("replica", "name") }
func liveKey(id string) string   { return store.Key("replica", "live", id) }
func keyKey(home string) string  { return store.Key("replica", "key", home) }
func tokenKey(sum string) string { return store.Key("replica", "token", sum) }
func goneKey(sum string) string  { return store.Key("replica", "gone", sum) }

// A Kind is whose a token is.
type Kind string

const (
	Owner Kind = "owner"
	Agent Kind = "agent"
	Link  Kind = "link" // in the page's address; good while its process runs
)

// A Token is one that a replica takes, without the token itself.
type Token struct {
	Sum  [sha256.Size]byte
	Kind Kind
	Name string // of an agent with a token of its own
}

type storedToken struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	Home string `json:"home"`
}

// A Member is a replica that runs, as it says of itself.
type Member struct {
	ID      string            `json:"id"`
	Home    string            `json:"home"` // names its state folder
	Host    string            `json:"host"`
	PID     int               `json:"pid"`
	Version string            `json:"version"`
	Started time.Time         `json:"started"`
	Clock   time.Time         `json:"clock"`             // its own, when it said so
	Rules   map[string]string `json:"rules,omitempty"`   // hashes of the files with settings and rules, by name
	Fault   string            `json:"fault,omitempty"`   // why it allows no call
	Links   []string          `json:"links,omitempty"`   // hashes of tokens in the page's address
	Streams int               `json:"streams,omitempty"` // the protocol by which it passes on events of turns; 0: it does not

	Skew time.Duration `json:"skew"` // how far its clock is ahead of the store's; not stored
}

// Config says what a replica tells of itself. Store, Dir, Seed and Log are needed.
type Config struct {
	Store   func() (*store.Store, error)
	Dir     string // the state folder
	Seed    []byte // the secret that its key is made of: 32 bytes
	Version string
	Tokens  func() []Token
	Rules   func() (hashes map[string]string, fault string)
	Streams int // see [Member.Streams]
	Log     *slog.Logger
}

// A Group is what one replica knows of all. Its methods are safe for concurrent use.
type Group struct {
	cfg     Config
	me      Member
	private ed25519.PrivateKey
	name    string

	mu        sync.Mutex
	items     map[string]store.Item
	keys      map[string]ed25519.PublicKey // by home
	published map[string]storedToken
	renewed   time.Time
	steady    time.Time // since when this replica was heard without a pause, as Expires counts
}

// Join announces this replica, and reads what the others said. Call [Group.Run] next.
func Join(ctx context.Context, cfg Config) (*Group, error) {
	if len(cfg.Seed) != ed25519.SeedSize {
		return nil, errors.New("join replicas: the secret has the wrong length")
	}
	home, err := Home(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("join replicas: %w", err)
	}
	host, _ := os.Hostname() // it is for people
	g := &Group{
		cfg: cfg, private: ed25519.NewKeyFromSeed(cfg.Seed), items: map[string]store.Item{}, keys: map[string]ed25519.PublicKey{}, published: map[string]storedToken{},
		me: Member{ID: strings.ToLower(rand.Text()), Home: home, Host: host, PID: os.Getpid(), Version: cfg.Version, Streams: cfg.Streams, Started: time.Now().UTC()},
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	db, err := cfg.Store()
	if err == nil {
		err = g.nameGroup(ctx, db)
	}
	for item, e := range scan(ctx, db, err) {
		if err = e; err != nil {
			break
		}
		g.take(item)
	}
	if err == nil {
		err = g.publish(ctx, db)
	}
	if err == nil {
		err = g.beat(ctx, db)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w; the store took longer than %s: see whether it is overloaded, then start again", err, duration.Text(joinTime))
	}
	if err != nil {
		return nil, fmt.Errorf("join replicas: %w", err)
	}
	return g, nil
}

func scan(ctx context.Context, db *store.Store, err error) func(func(store.Item, error) bool) {
	if err != nil {
		return func(yield func(store.Item, error) bool) { yield(store.Item{}, err) }
	}
	return db.Scan(ctx, prefix, store.Range{})
}

// Home returns the name of a state folder, which is in a file there. No other has it.
func Home(dir string) (string, error) {
	file := filepath.Join(dir, "replica")
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		if err = wholefile.Create(file, []byte(strings.ToLower(rand.Text())+"\n")); err == nil || errors.Is(err, os.ErrExist) {
			text, err = os.ReadFile(file)
		}
	}
	name := strings.TrimSpace(string(text))
	if err == nil && name == "" {
		err = fmt.Errorf("%s is empty; remove it", file)
	}
	return name, err
}

// nameGroup chooses a name for all replicas together, unless there is one, and reads it.
func (g *Group) nameGroup(ctx context.Context, db *store.Store) error {
	item, found, err := db.Get(ctx, nameKey())
	if err != nil || found {
		g.name = string(item.Value)
		return err
	}
	var b store.Batch
	b.Absent(nameKey())
	b.Put(nameKey(), []byte(strings.ToLower(rand.Text())))
	if _, err := db.Apply(ctx, &b); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	item, _, err = db.Get(ctx, nameKey())
	g.name = string(item.Value)
	return err
}

// Run follows the others and says that this one runs, until ctx ends.
func (g *Group) Run(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { g.follow(ctx) })
	defer beside.Wait()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for beaten := time.Now(); ; {
		select {
		case <-ctx.Done():
			g.leave(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
		err := g.tell(ctx, &beaten)
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.Warn("other replicas are not told of this one", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

// tell writes what changed, and that this replica runs where it is time to.
func (g *Group) tell(ctx context.Context, beaten *time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	db, err := g.cfg.Store()
	if err == nil {
		err = g.publish(ctx, db)
	}
	if err == nil && time.Since(*beaten) >= beat {
		*beaten = time.Now()
		err = g.beat(ctx, db)
	}
	return err
}

// leave says that this replica no longer runs.
func (g *Group) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if db, err := g.cfg.Store(); err == nil {
		var b store.Batch
		b.Delete(liveKey(g.me.ID))
		_, _ = db.Apply(ctx, &b) // it expires soon
	}
}

// follow takes in what the others say.
func (g *Group) follow(ctx context.Context) {
	for ctx.Err() == nil {
		db, err := g.cfg.Store()
		if err == nil {
			for c, err := range db.Watch(ctx, prefix, 0) {
				if errors.Is(err, store.ErrLagged) {
					g.forget()
				}
				if err != nil {
					break
				}
				if c.Gone {
					g.drop(c.Key)
				} else {
					g.take(c.Item)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// forget drops what others said, but for the tokens that were removed: what else was
// taken back meanwhile is not known.
func (g *Group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.items, func(key string, _ store.Item) bool { return !strings.HasPrefix(key, prefix+"gone/") })
	maps.DeleteFunc(g.keys, func(home string, _ ed25519.PublicKey) bool { return home != g.me.Home })
}

func (g *Group) take(item store.Item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if item.Key == liveKey(g.me.ID) && (g.steady.IsZero() || item.Expires.Sub(g.items[item.Key].Expires) > silence/2) {
		g.steady = item.Expires
	}
	g.items[item.Key] = item
	if home, ok := strings.CutPrefix(item.Key, prefix+"key/"); ok && len(item.Value) == ed25519.PublicKeySize {
		g.keys[home] = ed25519.PublicKey(item.Value)
	}
}

func (g *Group) drop(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.items, key)
	if home, ok := strings.CutPrefix(key, prefix+"key/"); ok {
		delete(g.keys, home)
	}
}

// publish writes the tokens and the key of this replica where they changed.
func (g *Group) publish(ctx context.Context, db *store.Store) error {
	now := map[string]storedToken{}
	for _, t := range g.cfg.Tokens() {
		sum := hex.EncodeToString(t.Sum[:])
		if t.Kind != Link && !g.has(goneKey(sum)) {
			now[sum] = storedToken{t.Kind, t.Name, g.me.Home}
		}
	}
	all := time.Since(g.renewed) >= again
	var b store.Batch
	n := 0
	for sum, t := range now {
		if all || g.published[sum] != t {
			value, _ := json.Marshal(t) // texts
			b.PutFor(tokenKey(sum), value, keep)
			n++
		}
	}
	if all { // what this folder had when it was last used
		g.mu.Lock()
		for key, item := range g.items {
			var t storedToken
			if sum, ok := strings.CutPrefix(key, prefix+"token/"); ok && json.Unmarshal(item.Value, &t) == nil && t.Home == g.me.Home {
				g.published[sum] = t
			}
		}
		g.mu.Unlock()
		b.PutFor(keyKey(g.me.Home), g.private.Public().(ed25519.PublicKey), keep)
		n++
	}
	for sum := range g.published {
		if _, still := now[sum]; !still {
			b.Delete(tokenKey(sum))
			n++
		}
	}
	if n == 0 {
		return nil
	}
	if _, err := db.Apply(ctx, &b); err != nil {
		return err
	}
	g.published = now
	if all {
		g.renewed = time.Now()
		g.mu.Lock()
		g.keys[g.me.Home] = g.private.Public().(ed25519.PublicKey)
		g.mu.Unlock()
	}
	return nil
}

// beat says that this replica runs.
func (g *Group) beat(ctx context.Context, db *store.Store) error {
	me := g.me
	me.Clock = time.Now().UTC()
	if g.cfg.Rules != nil {
		me.Rules, me.Fault = g.cfg.Rules()
	}
	for _, t := range g.cfg.Tokens() {
		if t.Kind == Link {
			me.Links = append(me.Links, hex.EncodeToString(t.Sum[:]))
		}
	}
	value, err := json.Marshal(me)
	if err != nil {
		return err
	}
	var b store.Batch
	b.PutFor(liveKey(me.ID), value, life)
	_, err = db.Apply(ctx, &b)
	return err
}

func (g *Group) has(key string) bool {
	_, ok := g.item(key)
	return ok
}

func (g *Group) item(key string) (store.Item, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	item, ok := g.items[key]
	return item, ok && (item.Expires.IsZero() || time.Now().Before(item.Expires))
}

// Name is the name of all replicas together.
func (g *Group) Name() string { return g.name }

// Bearer returns whose a token is that another replica takes.
func (g *Group) Bearer(sum [sha256.Size]byte) (owner, agent bool, name string) {
	text := hex.EncodeToString(sum[:])
	if item, ok := g.item(tokenKey(text)); ok {
		var t storedToken
		if json.Unmarshal(item.Value, &t) != nil || g.has(goneKey(text)) {
			return false, false, ""
		}
		return t.Kind == Owner, t.Kind == Agent, t.Name
	}
	return g.link(text), false, ""
}

// link reports whether a hash is of a token in the page's address.
func (g *Group) link(sum string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, item := range g.items {
		var m Member
		if strings.HasPrefix(key, prefix+"live/") && g.alive(item) && json.Unmarshal(item.Value, &m) == nil && slices.Contains(m.Links, sum) {
			return true
		}
	}
	return false
}

// alive reports whether a replica is there that said so in an item. The lock is held.
// Only times of the store's clock are compared. A replica is lost when this one was
// heard all the time and the other was not. While the store is away, no replica is heard.
func (g *Group) alive(item store.Item) bool {
	from := item.Expires
	if g.steady.After(from) {
		from = g.steady
	}
	return g.items[liveKey(g.me.ID)].Expires.Sub(from) <= silence
}

// ID is the name of this replica among all that ever were.
func (g *Group) ID() string { return g.me.ID }

// Peers returns the other replicas that run and have the same protocol for events of
// turns as this one.
func (g *Group) Peers() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for key, item := range g.items {
		id, live := strings.CutPrefix(key, prefix+"live/")
		var m Member
		if live && id != g.me.ID && g.alive(item) && json.Unmarshal(item.Value, &m) == nil && m.Streams != 0 && m.Streams == g.me.Streams {
			out = append(out, id)
		}
	}
	return out
}

// Lost reports whether a replica that once ran is certain to be gone: it has left, or
// was silent for too long while this one was heard.
func (g *Group) Lost(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	item, there := g.items[liveKey(id)]
	if !there { // it may be new, and not heard yet
		return g.items[liveKey(g.me.ID)].Expires.Sub(g.steady) > silence
	}
	return !g.alive(item)
}

// A State is how the replicas stand, as this one sees it.
type State struct {
	ID, Host string
	Live     int // replicas that run, this one included
}

// State returns how the replicas stand.
func (g *Group) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := State{ID: g.me.ID, Host: g.me.Host}
	for key, item := range g.items {
		if strings.HasPrefix(key, prefix+"live/") && g.alive(item) {
			s.Live++
		}
	}
	return s
}

// Gone reports whether a token was removed, wherever its file still is.
func (g *Group) Gone(sum [sha256.Size]byte) bool { return g.has(goneKey(hex.EncodeToString(sum[:]))) }

// Sign signs a text for a use.
func (g *Group) Sign(use, text string) []byte { return ed25519.Sign(g.private, message(use, text)) }

// Verify reports whether any replica has signed a text for a use.
func (g *Group) Verify(use, text string, signature []byte) bool {
	g.mu.Lock()
	keys := make([]ed25519.PublicKey, 0, len(g.keys))
	for _, k := range g.keys {
		keys = append(keys, k)
	}
	g.mu.Unlock()
	m := message(use, text)
	return len(signature) == ed25519.SignatureSize && slices.ContainsFunc(keys, func(k ed25519.PublicKey) bool { return ed25519.Verify(k, m, signature) })
}

func message(use, text string) []byte { return []byte("ken replica 1 " + use + "\x00" + text) }

// Remove makes the tokens of an agent count nowhere, and returns how many there were.
func Remove(ctx context.Context, db *store.Store, name string) (int, error) {
	var b store.Batch
	n := 0
	for item, err := range db.Scan(ctx, prefix+"token/", store.Range{}) {
		var t storedToken
		if err == nil {
			err = json.Unmarshal(item.Value, &t)
		}
		if err != nil {
			return 0, &capability.Error{Kind: capability.Unavailable, Op: "remove a token", Target: name, Err: err, Fix: "see that the store can be reached, and try again"}
		}
		if t.Kind == Agent && t.Name == name {
			b.Delete(item.Key)
			b.PutFor(goneKey(strings.TrimPrefix(item.Key, prefix+"token/")), nil, goneFor)
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	_, err := db.Apply(ctx, &b)
	return n, err
}

// Members returns the replicas that run, in the order of their names.
func Members(ctx context.Context, db *store.Store) ([]Member, error) {
	var out []Member
	for item, err := range db.Scan(ctx, prefix+"live/", store.Range{}) {
		var m Member
		if err == nil {
			err = json.Unmarshal(item.Value, &m)
		}
		if err != nil {
			return out, fmt.Errorf("list replicas: %w", err)
		}
		m.Skew, m.Links = m.Clock.Sub(item.Expires.Add(-life)), nil
		out = append(out, m)
	}
	coldsort.By(out, func(a, b Member) int {
		return strings.Compare(a.Host+a.Started.String()+a.ID, b.Host+b.Started.String()+b.ID)
	})
	return out, nil
}
