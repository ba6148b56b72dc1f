package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// The kinds of refusal, for errors.Is.
var (
	// ErrNone: the session does not exist or belongs to another principal.
	ErrNone = errors.New("session not found")
	// ErrBusy: another turn of the session runs.
	ErrBusy = errors.New("another turn of this session runs")
	// ErrLost: the turn no longer has the session. What it wrote before is
	// there; nothing more of it will be.
	ErrLost = errors.New("the turn has lost its session")
	// ErrNewer: a newer version of Ken has written to the session.
	ErrNewer = errors.New("a newer version of Ken wrote it")
	// ErrTooLarge: entries that no batch of the store takes.
	ErrTooLarge = errors.New("too large to keep")
)

// A Config is what a Store may be told. The zero value works.
type Config struct {
	Now func() time.Time // nil: time.Now

	// LockFor is how long a session stays locked after its process died; 0: 30
	// seconds. While the process lives the lock is renewed.
	LockFor time.Duration

	// Keep is how long a session is kept after its last entry; 0: for ever.
	Keep time.Duration

	// Holder names this process to those who find a session locked; empty: the
	// machine and the number of the process.
	Holder string

	// Process tells this process from all others that ever were, and Dead says
	// of such a word that its process is gone for certain: its locks are free at
	// once. Empty and nil: a lock is free when its time is over.
	Process string
	Dead    func(process string) bool
}

// A Store keeps sessions. Its methods may be used by any number of goroutines,
// and any number of processes may keep sessions in the same place. It holds
// nothing that needs closing.
type Store struct {
	db     *store.Store
	cfg    Config
	recent recent
	coming coming
}

// New returns the sessions of a store, which stays the caller's.
func New(db *store.Store, cfg Config) *Store {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.LockFor <= 0 {
		cfg.LockFor = 30 * time.Second
	}
	if cfg.Holder == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "this machine"
		}
		cfg.Holder = "process " + strconv.Itoa(os.Getpid()) + " on " + host
	}
	return &Store{db: db, cfg: cfg}
}

// now is what is written down: without a monotonic clock, which no other
// process has, and without what JSON would not keep.
func (s *Store) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// Begin makes a session, without entries. It makes an id where the head has
// none; ids of one owner sort by the second in which they were made. Tenant and
// Principal say whose it is. Created, Updated, Last, Turns, Usage and Cost are
// set.
func (s *Store) Begin(ctx context.Context, h Head) (Head, error) {
	now := s.now()
	if h.ID == "" {
		h.ID = newID()
	}
	switch {
	case h.Principal == "":
		return Head{}, fault(capability.Invalid, "begin", h.ID, errors.New("missing principal"), "name the principal that the session belongs to")
	case !plainID(h.ID):
		return Head{}, fault(capability.Invalid, "begin", fmt.Sprintf("%.70q", h.ID), errors.New("invalid session id"), "use up to 64 letters, digits and -_.")
	}
	h = Head{
		ID: h.ID, Tenant: h.Tenant, Principal: h.Principal, Title: h.Title, Folder: h.Folder,
		Agent: h.Agent, Mode: h.Mode, BegunBy: h.BegunBy, Created: now, Updated: now, Open: h.Open,
	}
	r := record{V: formatVersion, Head: h, Place: placeAt(now)}
	data, err := encodeHead(r)
	if err != nil {
		return Head{}, err
	}
	who := capability.Principal{ID: h.Principal, Tenant: h.Tenant}
	k := keysOf(who, h.ID)
	var b store.Batch
	b.Absent(k.head)
	b.Put(k.head, data)
	b.Put(k.list(r.Place), []byte(listed))
	switch _, err := s.db.Apply(ctx, &b); {
	case errors.Is(err, store.ErrConflict):
		return Head{}, fault(capability.Conflict, "begin", h.ID, errors.New("session id is already in use"), "leave the id out, or continue that session")
	case err != nil:
		return Head{}, err
	}
	if s.cfg.Keep > 0 {
		// What is over goes little by little, and never keeps anybody from
		// beginning.
		_, _ = s.sweep(ctx, k.ownerList(), 4)
	}
	r, err = decodeHead(store.Item{Key: k.head, Value: data})
	return r.Head, err
}

// Head reads what is known of a session without its entries.
func (s *Store) Head(ctx context.Context, who capability.Principal, id string) (Head, error) {
	r, _, err := s.head(ctx, "read", who, id)
	return r.Head, err
}

// head reads a head and its version.
func (s *Store) head(ctx context.Context, op string, who capability.Principal, id string) (record, int64, error) {
	item, err := s.item(ctx, op, who, id)
	if err != nil {
		return record{}, 0, err
	}
	r, err := decodeHead(item)
	if err != nil {
		return record{}, 0, err
	}
	if err := s.there(op, r); err != nil {
		return record{}, 0, err
	}
	return r, item.Version, nil
}

// item reads a head as it is stored.
func (s *Store) item(ctx context.Context, op string, who capability.Principal, id string) (store.Item, error) {
	if who.ID == "" || !plainID(id) {
		return store.Item{}, none(op, id)
	}
	item, there, err := s.db.Get(ctx, keysOf(who, id).head)
	if err == nil && (!there || len(item.Value) == 0) {
		err = none(op, id)
	}
	return item, err
}

// there refuses a session that is deleted or no longer kept.
func (s *Store) there(op string, r record) error {
	if r.Gone || s.over(r.Head.Updated) {
		return none(op, r.Head.ID)
	}
	return nil
}

// over reports whether a session that was last written to at t is no longer kept.
func (s *Store) over(t time.Time) bool {
	return s.cfg.Keep > 0 && !s.now().Before(t.Add(s.cfg.Keep))
}

// List returns the heads of a principal's sessions, the one whose last turn began
// last first; at most limit, and all for 0. What cannot be read is in the error
// and hides only itself.
func (s *Store) List(ctx context.Context, who capability.Principal, limit int) ([]Head, error) {
	return s.ListOnly(ctx, who, limit, func(Head) bool { return true })
}

// ListOnly is List without the sessions that are not wanted: limit counts those
// that are.
func (s *Store) ListOnly(ctx context.Context, who capability.Principal, limit int, wanted func(Head) bool) ([]Head, error) {
	if who.ID == "" {
		return nil, nil
	}
	var heads []Head
	var errs []error
	for item, err := range s.db.Scan(ctx, keysOf(who, "").ownerList(), store.Range{}) {
		if err != nil {
			return heads, errors.Join(append(errs, err)...)
		}
		if string(item.Value) != listed {
			continue
		}
		r, _, err := s.head(ctx, "list", who, item.Key[strings.LastIndexByte(item.Key, '/')+1:])
		switch {
		case err == nil && wanted(r.Head):
			heads = append(heads, r.Head)
		case err == nil:
		case ctx.Err() != nil:
			return heads, ctx.Err()
		case !errors.Is(err, ErrNone): // its time came just now
			errs = append(errs, err)
		}
		if limit > 0 && len(heads) == limit {
			break
		}
	}
	return heads, errors.Join(errs...)
}

// Read returns a session with all its entries, hidden ones and notes too. While a
// turn runs it is as it stood at one moment. The entries must not be changed.
func (s *Store) Read(ctx context.Context, who capability.Principal, id string) (Head, []Entry, error) {
	at, err := s.load(ctx, "read", who, id)
	return at.record.Head, at.entries, err
}

// load reads a session: only its head, where nothing has changed since this
// process last read the rest.
func (s *Store) load(ctx context.Context, op string, who capability.Principal, id string) (snapshot, error) {
	item, err := s.item(ctx, op, who, id)
	if err != nil {
		return snapshot{}, err
	}
	at, known := s.recent.get(item)
	if !known {
		at = snapshot{version: item.Version, head: item.Value}
		if at.record, err = decodeHead(item); err != nil {
			return snapshot{}, err
		}
	}
	if err = s.there(op, at.record); err != nil {
		s.recent.drop(item.Key)
		return snapshot{}, err
	}
	if known {
		return at, nil
	}
	if at.entries, at.size, err = s.entries(ctx, keysOf(who, id), at.record.Head.Last); err != nil {
		// A session that was deleted meanwhile has no gap: it is not there.
		if _, _, gone := s.head(ctx, op, who, id); gone != nil {
			err = gone
		}
		return snapshot{}, err
	}
	at.entries = slices.Clip(at.entries)
	s.recent.put(item.Key, at)
	return at, nil
}

// entries reads the entries up to last, and says how much room they take.
func (s *Store) entries(ctx context.Context, k keys, last int) (have []Entry, size int, err error) {
	if last == 0 {
		return nil, 0, nil
	}
	var rest partial
	for item, err := range s.db.Scan(ctx, k.entries(), store.Range{}) {
		if err != nil {
			return nil, 0, err
		}
		whole, ready, err := rest.add(item)
		if err != nil {
			return nil, 0, err
		}
		if !ready {
			continue
		}
		e, err := decodeEntry(whole)
		if err != nil {
			return nil, 0, err
		}
		if e.Seq != len(have)+1 || whole.Key != k.entry(e.Seq) {
			return nil, 0, damaged(whole.Key, fmt.Errorf("entry has number %d, want %d", e.Seq, len(have)+1))
		}
		size += len(whole.Value) + entryBytes
		if have = append(have, e); len(have) == last {
			return have, size, nil
		}
	}
	return nil, 0, damaged(k.entry(len(have)+1), errors.New("the entry is missing"))
}

// newID returns 26 letters and digits: 130 random bits that do not reveal when
// the session began. Older ids, 16 characters long, remain valid.
func newID() string {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	var id [26]byte
	_, _ = rand.Read(id[:]) // never fails
	for i := range id {
		id[i] = digits[id[i]&31]
	}
	return string(id[:])
}

func plainID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// keys are those of one session.
type keys struct {
	owner, id  string
	head, lock string
}

func keysOf(who capability.Principal, id string) keys {
	// The length before the tenant keeps it apart from the principal.
	sum := sha256.Sum256([]byte(strconv.Itoa(len(who.Tenant)) + ":" + who.Tenant + who.ID))
	owner := hex.EncodeToString(sum[:16])
	return keysUnder(owner, id)
}

func keysUnder(owner, id string) keys {
	base := "session/" + owner + "/" + id
	return keys{owner: owner, id: id, head: base + "/head", lock: base + "/lock"}
}

func (k keys) entries() string      { return "session/" + k.owner + "/" + k.id + "/entry/" }
func (k keys) entry(seq int) string { return k.entries() + fmt.Sprintf("%010d", seq) }
func (k keys) ownerList() string    { return listPrefix + k.owner + "/" }
func (k keys) list(place string) string {
	return k.ownerList() + place + "/" + k.id
}

const listPrefix = "session-list/"

// The values of a key of the list.
const (
	listed = "1"
	gone   = "gone" // its deletion has begun
)

// placeAt is the place of a time in the list: later times come first.
func placeAt(t time.Time) string { return fmt.Sprintf("%016x", uint64(math.MaxInt64-t.UnixMicro())) }

func fault(kind capability.ErrorKind, op, target string, err error, fix string) error {
	return &capability.Error{Kind: kind, Op: op + " session", Target: target, Err: err, Fix: fix}
}

func none(op, id string) error {
	return fault(capability.NotFound, op, cmp.Or(fmt.Sprintf("%.70q", id), "without a name"), ErrNone, "ken chat --list, or GET /api/v1/sessions, lists your sessions")
}
