// Package table reads capabilities from a table of a database, one row each:
// SQLite in a file, or PostgreSQL.
//
// It is a package of its own because the drivers are heavy, and most programs
// and tests read only files. What it reads is untrusted like everything that a
// source brings; the database is only ever read, never written.
package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/know/source/seal"
	"ken/internal/store"
)

// Config describes a [Table]. Zero fields mean the defaults.
type Config struct {
	// Name is the source's name; the place without its password when empty.
	Name string

	// DSN says where the table is: the path of an SQLite file, sqlite:PATH,
	// or postgres://user:password@host/database. Both forms of address take
	// ?table=NAME. A password in it is never shown.
	DSN string

	// Table is the table or view, with its schema where needed:
	// "capabilities". Capital letters are meant as they are written.
	Table string

	// Trust is given to everything found here. The zero value is the least.
	Trust capability.Trust

	// Poll is the time between looks for changes: 30 seconds, and never when
	// negative.
	Poll time.Duration

	// Timeout ends one look or one reading: 60 seconds.
	Timeout time.Duration
}

const (
	maxRows     = 200_000
	maxRowBytes = 1 << 20
	maxTold     = 100 // problems with rows that are told one by one
)

// A Table is a source whose capabilities are the rows of a table. Only the
// columns name and description must be there; every other column that a
// capability has a place for may be, in any spelling, and the rest is kept as
// metadata. See docs/sources.md for the columns.
//
// Its methods may be called at the same time, except Load and Watch, which one
// goroutine calls in turn.
type Table struct {
	cfg   Config
	place place
	db    database
	limit int // rows that are read: maxRows, fewer in tests

	mu    sync.Mutex
	last  []*capability.Capability // of the last good reading
	state string                   // of the table before that reading
}

// A database reads one table.
type database interface {
	// columns returns the names of the table's columns.
	columns(ctx context.Context) ([]string, error)

	// scan calls f for the rows that are asked for, in the order of their
	// keys, until f returns false.
	scan(ctx context.Context, shape shape, which selection, f func(row) bool) error

	// state returns a text that differs after the table changed.
	state(ctx context.Context) (string, error)

	close() error
}

// A selection is the rows of one key, or all rows when key is empty, and at
// most limit of them.
type selection struct {
	key   string
	limit int
}

// A row is one row: a value per column of the shape, each nil, bool, int64,
// float64, string or json.RawMessage. When the row is too large to be read the
// values are missing.
type row struct {
	key    string
	size   int64
	values []any
}

// New makes a Table, or says what is wrong with its configuration. Nothing is
// opened before Load.
func New(cfg Config) (*Table, error) {
	p, err := parsePlace(cfg.DSN, cfg.Table)
	if err != nil {
		return nil, fmt.Errorf("table source %s: %w", cfg.Name, err)
	}
	if cfg.Name == "" {
		cfg.Name = p.shown
	}
	if cfg.Poll == 0 {
		cfg.Poll = 30 * time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 60 * time.Second
	}
	t := &Table{cfg: cfg, place: p, limit: maxRows}
	if p.postgres != nil {
		t.db = newPostgres(p)
	} else {
		t.db = newSQLite(p)
	}
	return t, nil
}

// Name returns the source's name.
func (t *Table) Name() string { return t.cfg.Name }

// Trust returns the trust of all that the table holds.
func (t *Table) Trust() capability.Trust { return t.cfg.Trust }

// Close closes the database.
func (t *Table) Close() error { return t.db.close() }

// Load reads the whole table.
func (t *Table) Load(ctx context.Context) (capability.Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	b, err := t.read(ctx)
	if err != nil {
		return capability.Batch{}, t.failed(ctx, "load", err)
	}
	return b, nil
}

func (t *Table) read(ctx context.Context) (capability.Batch, error) {
	state, err := t.db.state(ctx) // before reading, so that no change slips between
	if err != nil {
		return capability.Batch{}, err
	}
	shape, err := t.shape(ctx)
	if err != nil {
		return capability.Batch{}, err
	}
	r := reading{table: t, shape: shape}
	if err := t.db.scan(ctx, shape, selection{limit: t.limit + 1}, r.row); err != nil {
		return capability.Batch{}, err
	}
	r.tell()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keepPointersLocked(r.batch.Capabilities)
	t.last, t.state = r.batch.Capabilities, state
	return r.batch, nil
}

// shape looks at the columns, since another program may have changed them.
func (t *Table) shape(ctx context.Context) (shape, error) {
	columns, err := t.db.columns(ctx)
	if err != nil {
		return shape{}, err
	}
	return newShape(columns)
}

// keepPointersLocked makes capabilities that did not change the same pointers
// as before.
func (t *Table) keepPointersLocked(list []*capability.Capability) {
	was := make(map[capability.ID]*capability.Capability, len(t.last))
	for _, c := range t.last {
		was[c.ID] = c
	}
	for i, c := range list {
		if old, ok := was[c.ID]; ok && old.Hash == c.Hash && reflect.DeepEqual(old, c) {
			list[i] = old
		}
	}
}

// Watch looks for changes again and again. A look that fails is yielded as an
// error, once for each cause.
func (t *Table) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		if t.cfg.Poll < 0 {
			<-ctx.Done()
			return
		}
		timer := time.NewTimer(t.cfg.Poll)
		defer timer.Stop()
		told := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			b, changed, err := t.look(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if err.Error() != told && !yield(capability.Batch{}, err) {
					return
				}
				told = err.Error()
			default:
				told = ""
				if changed && !yield(b, nil) {
					return
				}
			}
			timer.Reset(t.cfg.Poll)
		}
	}
}

func (t *Table) look(ctx context.Context) (b capability.Batch, changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	state, err := t.db.state(ctx)
	if err != nil {
		return b, false, t.failed(ctx, "look at", err)
	}
	t.mu.Lock()
	same := state == t.state
	t.mu.Unlock()
	if same {
		return b, false, nil
	}
	if b, err = t.read(ctx); err != nil {
		return b, false, t.failed(ctx, "load", err)
	}
	return b, true, nil
}

// Detail reads the row of a capability again.
func (t *Table) Detail(ctx context.Context, c *capability.Capability) (capability.Detail, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	shape, err := t.shape(ctx)
	if err != nil {
		return capability.Detail{}, t.failed(ctx, "read", err)
	}
	found := errors.New("row not found")
	kind := capability.NotFound
	var detail capability.Detail
	err = t.db.scan(ctx, shape, selection{key: c.Origin.Pointer, limit: t.limit}, func(r row) bool {
		_, d, problem := shape.capability(r)
		if problem == nil && seal.Unchanged(c, d) == nil {
			detail, found = d, nil
			return false
		}
		kind, found = capability.Conflict, errors.New("row changed since it was loaded")
		return true // another row may have the same key
	})
	if err != nil {
		return capability.Detail{}, t.failed(ctx, "read", err)
	}
	if found != nil {
		return capability.Detail{}, &capability.Error{Kind: kind, Op: "read", Target: string(c.ID), Err: fmt.Errorf("%s: %w", c.Origin, found), Fix: "reload the catalog"}
	}
	return detail, nil
}

// failed says what could not be done, without a word that is secret.
func (t *Table) failed(ctx context.Context, op string, err error) error {
	e := &capability.Error{Kind: capability.Unavailable, Op: op, Target: t.place.shown, Fix: "check the address, the table and the rights to read it"}
	if shapeErr, ok := errors.AsType[*shapeError](err); ok {
		e.Kind, e.Err, e.Fix = capability.Invalid, errors.New(shapeErr.message), shapeErr.fix
		return e
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Kind, e.Err, e.Fix = capability.Timeout, errors.New("the database took too long"), "try again, or give the source a longer timeout"
		return e
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.Err = errors.New(t.place.scrub(store.ConnectError(err).Error())) // the text only: the chain may hold the password
	return e
}

func (t *Table) origin(key string) capability.Origin {
	return capability.Origin{Source: t.cfg.Name, Format: "table", Location: capability.Database, Path: t.place.shown, Pointer: key}
}

// A reading gathers the rows of one look.
type reading struct {
	table *Table
	shape shape
	batch capability.Batch
	rows  int
	bad   int
}

// row takes one row, and reports whether more are wanted.
func (r *reading) row(one row) bool {
	if r.rows++; r.rows > r.table.limit {
		r.batch.Problems = append(r.batch.Problems, capability.Problem{
			Code: "too-many-rows", Origin: r.table.origin(""),
			Message: fmt.Sprintf("the table has more than %d rows; the rest is not read", r.table.limit), Fix: "name a view with fewer rows",
		})
		return false
	}
	c, d, problem := r.shape.capability(one)
	if problem != nil {
		if r.bad++; r.bad <= maxTold {
			problem.Origin = r.table.origin(one.key)
			r.batch.Problems = append(r.batch.Problems, *problem)
		}
		return true
	}
	c.Origin = r.table.origin(one.key)
	c.Trust = r.table.cfg.Trust
	seal.Seal(c, d)
	r.batch.Capabilities = append(r.batch.Capabilities, c)
	return true
}

// tell says how many bad rows were not told one by one.
func (r *reading) tell() {
	if r.bad > maxTold {
		r.batch.Problems = append(r.batch.Problems, capability.Problem{
			Code: "bad-rows", Origin: r.table.origin(""),
			Message: fmt.Sprintf("%d more rows could not be read", r.bad-maxTold), Fix: "fix the rows above first; the cause is likely the same",
		})
	}
	r.batch.Capabilities = slices.Clip(r.batch.Capabilities)
}

// quote makes an identifier safe to stand in a query. Names from the
// configuration were checked before; names of columns come from the database.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
