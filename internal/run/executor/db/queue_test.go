package db

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// TestQueue checks that statements beyond the limits of a database and of an
// engine wait, and get an error that says so when their time is over.
func TestQueue(t *testing.T) {
	path := shop(t)
	var list []Connection
	for i := range 3 {
		list = append(list, Connection{Name: fmt.Sprintf("shop%d", i), Engine: SQLite, Path: path, Timeout: time.Minute})
	}
	synctest.Test(t, func(t *testing.T) {
		e := rig(t, list)
		enter := func(c Connection) func() {
			t.Helper()
			leave, err := e.queue.enter(t.Context(), c)
			executortest.Must(t, err)
			return leave
		}
		ask := func(name string) error {
			_, err := e.Invoke(t.Context(), executortest.Call("tool:db_"+name+"_query", object{"sql": "SELECT 1"}))
			return err
		}
		var first []func()
		for range sqliteAtOnceEach {
			first = append(first, enter(list[0]))
		}
		begun := time.Now()
		err := ask("shop0")
		for _, want := range []string{"waited 1 min", "at most 4 statements of one sqlite database run at once", "databases.shop0.timeout"} {
			if kind(err) != capability.Timeout || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("a fifth statement of one database: %v, want %q", err, want)
			}
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("it waited %v, want the timeout of the database", took)
		}
		if err := ask("shop1"); err != nil {
			t.Errorf("another database: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Invoke(short, executortest.Call("tool:db_shop0_query", object{"sql": "SELECT 1"}))
		if kind(err) != capability.Timeout || !strings.Contains(fmt.Sprint(err), "waited 1 s") || !strings.Contains(fmt.Sprint(err), "limits.timeout") {
			t.Errorf("a call with a deadline of its own: %v", err)
		}
		for range sqliteAtOnce - sqliteAtOnceEach {
			defer enter(list[1])()
		}
		if err := ask("shop2"); kind(err) != capability.Timeout || !strings.Contains(fmt.Sprint(err), "at most 8 sqlite statements run at once") {
			t.Errorf("a ninth statement: %v", err)
		}
		waits := make(chan error)
		go func() { waits <- ask("shop0") }()
		synctest.Wait()
		first[0]()
		if err := <-waits; err != nil {
			t.Errorf("a statement that got its turn: %v", err)
		}
		for _, leave := range first[1:] {
			leave()
		}
	})
}
