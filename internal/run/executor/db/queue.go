package db

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ken/internal/duration"
)

// The most statements that run at once. Each SQLite statement may hold
// sqliteMostValues of Ken's own memory, and each PostgreSQL session takes one of
// the connections that the server has for all its clients. The lower number, of
// one database, leaves room for the others while it is slow.
const (
	sqliteAtOnce       = 8
	sqliteAtOnceEach   = 4
	postgresAtOnce     = 32
	postgresAtOnceEach = 16
)

// A queue bounds how many statements run at once. Those that wait get their
// turn in the order in which they came. The zero value is ready for use.
type queue struct {
	mu    sync.Mutex
	slots map[string]chan struct{} // of an engine, and of each database
}

// enter waits for a turn of the connection. It waits for the connection's
// timeout at most. The caller must call leave if err is nil.
func (q *queue) enter(ctx context.Context, c Connection) (leave func(), err error) {
	all, each := sqliteAtOnce, sqliteAtOnceEach
	if c.Engine != SQLite {
		all, each = postgresAtOnce, postgresAtOnceEach
	}
	own, engine := q.slot(c.Engine+"/"+c.Name, each), q.slot(c.Engine, all)
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	begun := time.Now()
	select {
	case own <- struct{}{}:
	case <-limited.Done():
		return nil, &queueError{time.Since(begun), fmt.Sprintf("at most %d statements of one %s database run at once", each, c.Engine)}
	}
	select {
	case engine <- struct{}{}:
	case <-limited.Done():
		<-own
		return nil, &queueError{time.Since(begun), fmt.Sprintf("at most %d %s statements run at once", all, c.Engine)}
	}
	return func() { <-engine; <-own }, nil
}

// slot returns the channel of a name, which holds one value for each statement
// that runs.
func (q *queue) slot(name string, most int) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots == nil {
		q.slots = map[string]chan struct{}{}
	}
	if q.slots[name] == nil {
		q.slots[name] = make(chan struct{}, most)
	}
	return q.slots[name]
}

// A queueError is a statement that did not get its turn in time.
type queueError struct {
	waited time.Duration
	limit  string
}

func (e *queueError) Error() string {
	return fmt.Sprintf("not run: waited %s for other statements; %s", duration.Text(e.waited), e.limit)
}
