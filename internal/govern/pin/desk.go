package pin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/store"
)

// A State says how a tool stands. Only Accepted lets it be used.
type State uint8

const (
	Unknown  State = iota // not known; the zero value
	Added                 // it was not there when the server was trusted
	Changed               // it is not what was accepted
	Accepted              // it is exactly what was accepted
)

func (s State) String() string {
	switch s {
	case Added:
		return "new"
	case Changed:
		return "changed"
	case Accepted:
		return "accepted"
	}
	return "unknown"
}

// MarshalText writes the word for it.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Verdict is what the desk says about one tool as it was listed.
type Verdict struct {
	State State
	// Exposed is the name for clients. It is empty for a tool that was never
	// accepted.
	Exposed string
	// Diff says in one line, fit for a terminal, what is new or changed.
	Diff string
	// Hash names what was listed, for [Desk.Accept].
	Hash string
}

// A Rule says what becomes of a tool that was not accepted. The zero Rule
// lets it wait for a person.
type Rule uint8

const (
	Quarantine Rule = iota
	Accept
)

// A Policy has the rules for tools that appear, and that change, after a
// server's first listing. The zero Policy lets both wait.
type Policy struct{ New, Changed Rule }

// Config is what a desk may be told. The zero value works.
type Config struct {
	// Policy returns the rules of the moment. Nil: the zero Policy.
	Policy func() Policy

	// Log makes a record durable. Where it fails nothing is accepted. Nil
	// records nothing.
	Log func(context.Context, audit.Record) error

	// Reviewers are the roles that may accept and forget. Without any, every
	// principal may.
	Reviewers []string

	// Reserved are exposed names that no tool may have, nor one that reads
	// like it: those of Ken's own tools.
	Reserved []string

	// Plain says whether a tool that is named for the first time may have its
	// own name. Where it may not, the server's name stands before it, so that
	// its name does not depend on which server answered first. Nil: it may.
	Plain func() bool

	Now func() time.Time // nil: time.Now
}

// A Desk keeps the pins. Its methods may be used by any number of goroutines,
// and any number of processes may have a desk on the same store. It holds
// nothing that needs closing.
type Desk struct {
	store *store.Store
	conf  Config
	turn  chan struct{} // held while a change is made: changes here do not meet

	mu     sync.Mutex
	known  map[string]*book          // by server
	hashes map[string]map[sum]string // by server: of spellings other than the pinned one
}

// New returns the desk of a store. The store stays the caller's.
func New(s *store.Store, c Config) (*Desk, error) {
	if s == nil {
		return nil, errors.New("open pins: missing store")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Policy == nil {
		c.Policy = func() Policy { return Policy{} }
	}
	if c.Plain == nil {
		c.Plain = func() bool { return true }
	}
	if c.Log == nil {
		c.Log = func(context.Context, audit.Record) error { return nil }
	}
	c.Reviewers, c.Reserved = slices.Clone(c.Reviewers), slices.Clone(c.Reserved)
	return &Desk{
		store: s, conf: c, turn: make(chan struct{}, 1),
		known: map[string]*book{}, hashes: map[string]map[sum]string{},
	}, nil
}

// Check says how the tools stand that a server lists now, by name, and
// remembers what waits. The server's first listing that has a tool is pinned
// and accepted as a whole, by one process only, however many see it first.
//
// With an error no tool is Accepted that was not before: those that could not
// be judged are Unknown. Every tool listed is in the map in any case.
func (d *Desk) Check(ctx context.Context, server string, tools []Tool) (map[string]Verdict, error) {
	list := group(tools)
	out, err := d.check(ctx, server, list)
	if out == nil {
		out = make(map[string]Verdict, len(list))
		for _, e := range list {
			out[e.name] = Verdict{}
		}
	}
	if err != nil {
		return out, unavailable("check tools", server, err)
	}
	return out, nil
}

func unavailable(op, server string, err error) error {
	if kind := capability.KindOf(err); kind != capability.Internal {
		return err
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: op + " of", Target: "mcp:" + ServerName(server), Rule: "mcp.pins", Err: err,
		Fix: "repair the store or the audit log; until then Ken accepts no new tools of this server",
	}
}

func (d *Desk) check(ctx context.Context, server string, list listing) (map[string]Verdict, error) {
	if len(list) == 0 {
		return nil, nil // a server that is still waking up is not trusted for it
	}
	b, err := d.read(ctx, server)
	if err != nil {
		return nil, err
	}
	d.name(b, list)
	if b.settled(list, d.conf.Policy()) {
		return b.verdicts(list), nil
	}
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	defer d.done()
	for range mostTries {
		if b, err = d.read(ctx, server); err != nil {
			return nil, err
		}
		policy := d.conf.Policy()
		if b.settled(list, policy) {
			return b.verdicts(list), nil
		}
		next, err := d.settle(ctx, b, list, policy)
		switch {
		case err == nil:
			return next.verdicts(list), nil
		case errors.Is(err, store.ErrConflict):
		case b.version > 0:
			return b.verdicts(list), err // nothing is accepted in it that was not before
		default:
			return nil, err
		}
	}
	return nil, errTries
}

// wait takes the turn to change something, done gives it back.
func (d *Desk) wait(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Desk) done() { <-d.turn }

var errTries = fmt.Errorf("other processes changed the pins %d times in the meantime; try again", mostTries)

// mostTries bounds how often a change is made again after another process was
// first. Each time another process's change went through.
const mostTries = 200

// now is what is written down: without a monotonic clock, which no other process
// has.
func (d *Desk) now() time.Time { return d.conf.Now().UTC().Truncate(time.Microsecond) }
