package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OpenSteps opens a store with more steps after the program's own.
func OpenSteps(ctx context.Context, address string, more ...string) (*Store, error) {
	p, err := parsePlace(address, "")
	if err != nil {
		return nil, err
	}
	plans := plans()
	plans.sqlite = append(plans.sqlite, more...)
	plans.postgres = append(plans.postgres, more...)
	return open(ctx, p, plans)
}

// SQL does something on the connection that writes; nobody else may.
func SQL(s *Store, format string, args ...any) error {
	_, err := s.db.(*sqlite).writer.conn.ExecContext(context.Background(), fmt.Sprintf(format, args...))
	return err
}

// Rows counts the items that are kept, those that are gone included.
func Rows(s *Store) (n int) {
	if err := s.db.(*sqlite).readers.QueryRow("SELECT count(*) FROM ken_item").Scan(&n); err != nil {
		panic(err)
	}
	return n
}

// SetWait sets how long the store waits for others.
func SetWait(s *Store, d time.Duration) {
	switch db := s.db.(type) {
	case *sqlite:
		db.writer.wait = d
	case *postgres:
		db.wait = d
	}
}

// Pragma reads a setting of the connection that writes.
func Pragma(s *Store, name string) (value string) {
	if err := s.db.(*sqlite).writer.conn.QueryRowContext(context.Background(), "PRAGMA "+name).Scan(&value); err != nil {
		panic(err)
	}
	return value
}

// SetKeep sets how long what is gone is kept.
func SetKeep(s *Store, d time.Duration) { s.db.(*sqlite).writer.sweeper.keep = d }

// Recheck makes the next Check look for itself.
func Recheck(s *Store) { s.trust.when = time.Time{} }

// Hold makes the answer of the last Check stand, where there is one.
func Hold(s *Store) {
	if !s.trust.when.IsZero() {
		s.trust.when = time.Now().Add(time.Hour)
	}
}

// Head is the version of the newest batch.
func Head(s *Store) int64 {
	head, err := s.db.head(context.Background())
	if err != nil {
		panic(err)
	}
	return head
}

// LateOnce fences off the next commit in one trip of a PostgreSQL store, and then has
// the server get that commit, as it was sent before.
func LateOnce(ctx context.Context, s *Store, b *Batch) error {
	db := s.db.(*postgres)
	sent := db.receipt.last
	const token = "late"
	if _, err := db.fence(ctx, token, nil); !errors.Is(err, errNotCommitted) {
		return fmt.Errorf("fence = %v, want %v", err, errNotCommitted)
	}
	fenced := db.receipt.last
	db.receipt.last = sent
	defer func() { db.receipt.last = fenced }()
	g := &group{requests: []*request{{batch: b}}}
	e, _ := g.expect()
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, _, _ = db.sendOnce(ctx, conn.Conn(), &e, token, false) // what it wrote is looked at
	return nil
}
