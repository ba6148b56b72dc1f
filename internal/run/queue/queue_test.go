package queue_test

import (
	"testing"

	"ken/internal/run/queue"
	"ken/internal/run/queue/queuetest"
	"ken/internal/store/storetest"
)

// TestStored runs the kit on the queue in a store: SQLite, or PostgreSQL where
// the tests have a server.
func TestStored(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) (a, b queue.Queue) {
		address := storetest.Address(t)
		return queue.NewStored(storetest.Open(t, address), nil), queue.NewStored(storetest.Open(t, address), nil)
	})
}
