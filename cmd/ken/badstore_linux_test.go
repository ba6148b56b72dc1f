package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/testkit/scripttest"
	"ken/internal/testkit/storetest"
)

// TestBadStore has a PostgreSQL that is read-only, full, slow, or put back to an earlier
// state. Calls are refused with the reason, ken doctor --cluster names it, calls work
// again when it is over, and no effect happens twice.
func TestBadStore(t *testing.T) {
	testkit.CI(t, "starts servers on bad stores")
	t.Run("read-only", func(t *testing.T) {
		pg := storetest.NewServer(t)
		c := newChaos(t, 2, pg.Address)
		c.works("before")
		pg.Do("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
		names(t, c.refused("readonly"), "read-only")
		c.all[0].doctor(t, "the store is read-only")
		pg.Do("SET default_transaction_read_only = off", "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		c.works("after")
		c.settle()

		// A server that follows another one takes no writes either.
		standby := pg.Standby()
		lost := &house{binary: c.all[0].binary, home: t.TempDir(), work: t.TempDir()}
		if err := os.WriteFile(filepath.Join(lost.home, "ken.yaml"), fmt.Appendf(nil, "store: %q\n", standby.Address), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"doctor", "--cluster"}, {"serve", "--addr", "127.0.0.1:0"}} {
			if out, err := lost.command(args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "read-only") {
				t.Errorf("ken %s on a standby: %v\n%s", args[0], err, out)
			}
		}
	})

	t.Run("full", func(t *testing.T) {
		if !scripttest.CanMount() {
			t.Skip("cannot here: a disk of its own cannot be mounted")
		}
		pg := storetest.NewServer(t)
		small := openDir(t)
		if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=48m"); err != nil {
			t.Fatal(err)
		}
		// The server may still use it when the test ends.
		t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
		pg.Own(small)
		pg.Do("CREATE TABLESPACE small LOCATION '"+small+"'", "CREATE DATABASE small TABLESPACE small")
		address := strings.Replace(pg.Address, "/postgres?", "/small?", 1)
		c := newChaos(t, 2, address)
		c.works("before")
		ballast := filepath.Join(small, "ballast")
		fillDisk(t, ballast)
		names(t, c.refused("full"), "full", "space")
		c.all[0].doctor(t, "the store is full")
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		c.works("after")
		c.settle()
	})

	t.Run("slow", func(t *testing.T) {
		wire := storetest.NewWire(t, storetest.Postgres(t))
		c := newChaos(t, 2, wire.Address)
		c.works("before")
		wire.Slow(time.Second)
		// The same call on both servers at once: one effect, or none that is told.
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				for range 3 {
					if status, got, err := c.call(t.Context(), c.pick(i), "slow"); err == nil && status == http.StatusOK {
						c.acknowledged.Store("slow", got.Result.Meta["effect"])
						c.done.Add(1)
						return
					}
				}
			})
		}
		both.Wait()
		c.all[0].doctor(t, "the store is slow")
		wire.Slow(0)
		c.works("after")
		c.settle()
	})

	t.Run("restored", func(t *testing.T) {
		pg := storetest.NewServer(t)
		c := newChaos(t, 2, pg.Address)
		c.works("before")
		backup := filepath.Join(t.TempDir(), "yesterday.sql")
		pg.Dump(backup)
		for i := range 5 {
			c.works(fmt.Sprint("since", i))
		}
		// Each server has seen the last of it when it asks again, twice a second.
		<-time.After(2 * time.Second)
		pg.Restore(backup)
		for i := range c.all {
			var got invoked
			if !testkit.Until(func() bool {
				_, got, _ = c.call(t.Context(), c.pick(i), "since0-0") // it would run again
				return strings.Contains(got.Detail, "store.restored")
			}) {
				t.Errorf("a call after a restore: %+v, want store.restored", got)
			}
			names(t, got, "put back to an earlier state")
		}
		c.all[0].doctor(t, "put back to an earlier state")
		// A server that was started again remembers, and one that has seen nothing is told.
		c.kill(0)
		fresh := newReplicas(t, 1, pg.Address)[0]
		fresh.configure(t, shellOpen, pg.Address)
		for _, s := range []*server{c.pick(0), fresh.server} {
			var got invoked
			if !testkit.Until(func() bool {
				_, got, _ = c.call(t.Context(), s, "since0-0")
				return strings.Contains(got.Detail, "store.restored")
			}) {
				t.Errorf("a call after a restore and a restart: %+v, want store.restored", got)
			}
		}
		if out, err := fresh.command("doctor", "--cluster", "--accept-restore").CombinedOutput(); err != nil {
			t.Errorf("accept: %v\n%s", err, out)
		}
		for i := range c.all {
			c.kill(i)
		}
		c.works("after")
		// What was acknowledged before is not called again: the operator accepted that
		// it could run twice.
		c.settle()
	})
}

// TestDifferentReplicas has a replica whose clock is wrong, whose version is the next one,
// and whose rules differ. Each is named, and no effect happens twice. The newer version has
// changed the tables: the older one works on meanwhile, and also when they change back.
func TestDifferentReplicas(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	pg := storetest.NewServer(t)
	binary := skewedKen(t)
	c := newChaos(t, 2, pg.Address)
	r := c.all[1]
	r.house.binary, r.house.env = binary, []string{skewVariable + "=5400"}
	r.configure(t, shellOpen+"# another file\n", pg.Address)
	c.kill(1)
	c.all[0].doctor(t, "90 min ahead of that of the store")
	c.all[0].doctor(t, "the replicas have different versions")
	c.all[0].doctor(t, skewedVersion)
	c.all[0].doctor(t, "ken.yaml is not the same on all replicas")
	same := func(n int) { // the same call on both
		word := fmt.Sprint("same", n)
		for i := range c.all {
			if !testkit.Until(func() bool {
				status, got, err := c.call(t.Context(), c.pick(n+i), word)
				if err == nil && status == http.StatusOK {
					c.acknowledged.Store(word, got.Result.Meta["effect"])
					c.done.Add(1)
				}
				return err == nil && status == http.StatusOK
			}) {
				t.Errorf("call %s never works", word)
			}
		}
	}
	schema := func() string { return pg.SQL("SELECT version FROM ken_schema") }
	newest := schema()
	for n := range 5 {
		same(n)
	}
	next := *r.house
	if out, err := next.command("doctor", "--cluster", "--migrate", "2").CombinedOutput(); err != nil || schema() != "2" || newest == "2" {
		t.Errorf("the tables were at %s; back to 2: %v, now %s\n%s", newest, err, schema(), out)
	}
	for n := range 5 {
		same(5 + n)
	}
	if out, err := c.all[0].command("doctor", "--cluster", "--migrate", newest).CombinedOutput(); err == nil || !strings.Contains(string(out), "this program knows 1 to 2") {
		t.Errorf("the older program brings the tables to schema %s: %v\n%s", newest, err, out)
	}
	if out, err := next.command("doctor", "--cluster", "--migrate", "latest").CombinedOutput(); err != nil || schema() != newest {
		t.Errorf("forward again: %v, %s\n%s", err, schema(), out)
	}
	for n := range 5 {
		same(10 + n)
	}
	c.kill(0) // the older version starts on the newer tables
	same(15)
	c.settle()
}
