package daemon_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/serve/daemon"
	"ken/internal/testkit"
)

// A document is what the pool of these tests keeps open.
type document struct {
	owner  *document
	closed *closedNames
	name   string
}

func (d *document) Watch(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (d *document) Close() error {
	d.closed.add(d.name)
	return nil
}

// closedNames lists the documents that were closed.
type closedNames struct {
	mu   sync.Mutex
	list []string
}

func (c *closedNames) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, name)
}

// names returns the list, the first n of it in alphabetical order: timers that
// end at the same time close documents in any order.
func (c *closedNames) names(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.list)
	slices.Sort(out[:min(n, len(out))])
	return out
}

// TestPool: users of one folder share a document, folders with equal flags share
// the owner, and only what is not an owner is closed when nobody uses it.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed closedNames
		pool := daemon.NewPool(t.Context(), time.Minute, func(d *document, message string, err error) { t.Errorf("%s: %s: %v", d.name, message, err) })
		failed := errors.New("it cannot be opened")
		enter := func(folder, flags string, err error) (*document, func()) {
			t.Helper()
			d, done, got := pool.Enter(t.Context(), daemon.Key{Folder: folder, Flags: flags}, func(_ context.Context, owner *document) (*document, error) {
				if err != nil {
					return nil, err
				}
				return &document{owner, &closed, folder + flags}, nil
			})
			if !errors.Is(got, err) {
				t.Fatalf("Enter(%s, %s) = %v, want %v", folder, flags, got, err)
			}
			return d, done
		}
		a, leaveA := enter("a", "", nil)
		again, leaveAgain := enter("a", "", nil)
		b, leaveB := enter("b", "", nil)
		other, leaveOther := enter("a", " -x", nil)
		if a != again || a.owner != nil || b.owner != a || other.owner != nil {
			t.Fatalf("a, again, b, other = %p, %p, %+v, %+v; want a twice, and b with the owner a", a, again, b, other)
		}
		enter("c", "", failed)
		if c, leave := enter("c", "", nil); c.owner != a {
			t.Error("a folder that failed is not opened again")
		} else {
			leave()
		}
		for _, leave := range []func(){leaveA, leaveAgain, leaveB, leaveOther, leaveB} {
			leave()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		testkit.Equal(t, "closed after the idle time", closed.names(2), []string{"b", "c"})
		_, leave := enter("b", "", nil)
		leave()
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		if got := closed.names(2); len(got) != 5 || got[2] != "b" {
			t.Errorf("closed at the end: %q, want the owners last", got)
		}
		if _, _, err := pool.Enter(t.Context(), daemon.Key{}, nil); err == nil {
			t.Error("Enter works after Close")
		}
	})
}
