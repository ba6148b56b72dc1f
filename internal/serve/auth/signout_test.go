package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/testkit"
)

func openStore(t testing.TB) *store.Store {
	t.Helper()
	s := testkit.Must(store.Open(t.Context(), "", t.TempDir()))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, s *store.Store, key, value string) {
	t.Helper()
	var b store.Batch
	b.PutFor(key, []byte(value), time.Hour)
	if _, err := s.Apply(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
}

// TestSignOutsOfAnotherStore: where the store is gone nobody knows what was signed
// out, so no cookie of before counts; those that come after do, over restarts.
func TestSignOutsOfAnotherStore(t *testing.T) {
	tokens := open(t)
	jar := newJar(tokens)
	given := func(ago time.Duration) string {
		c := newTicket()
		c.Owner, c.Given = true, time.Now().Add(-ago).Unix()
		value := testkit.Must(jar.seal(c))(t)
		return jar.name("", false) + "=" + value
	}
	old := given(time.Minute)
	db := openStore(t)
	cfg := Config{Tokens: tokens, Loopback: true, SignOuts: func() (*store.Store, error) { return db, nil }}
	h, _ := guarded(t, cfg)
	wantStatus(t, "a cookie from before the store", 401, ask(h, "GET", "/api", "localhost", "Cookie", old))
	fresh := entered(t, h, tokens)
	for range 2 {
		wantStatus(t, "a cookie since", 204, ask(h, "GET", "/api", "localhost", "Cookie", fresh))
		h, _ = guarded(t, cfg)
	}
	// Of a store that was there before the cookie all count that it does not name.
	put(t, db, store.Key("signin", "born"), `{"at":1}`)
	h, _ = guarded(t, cfg)
	wantStatus(t, "a cookie of a store that stayed", 204, ask(h, "GET", "/api", "localhost", "Cookie", old))
}

// TestSignOutsUnread: where what was signed out cannot be read, no cookie of
// before counts, new ones and tokens do, and the log says so.
func TestSignOutsUnread(t *testing.T) {
	for name, broken := range map[string]func(*store.Store) func() (*store.Store, error){
		"no store": func(*store.Store) func() (*store.Store, error) {
			return func() (*store.Store, error) { return nil, errors.New("the disk is full") }
		},
		"closed": func(db *store.Store) func() (*store.Store, error) {
			db.Close()
			return func() (*store.Store, error) { return db, nil }
		},
		"no record": func(db *store.Store) func() (*store.Store, error) {
			put(t, db, store.Key("signin", "out", "x"), "{")
			return func() (*store.Store, error) { return db, nil }
		},
		"no time": func(db *store.Store) func() (*store.Store, error) {
			put(t, db, store.Key("signin", "before"), "soon")
			return func() (*store.Store, error) { return db, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := open(t)
			first := newGuard(t, Config{Tokens: tokens, Loopback: true})
			old := newTicket()
			old.Owner, old.Given = true, time.Now().Add(-time.Minute).Unix()
			value := testkit.Must(first.jar.seal(old))(t)
			cookie := first.jar.name("", false) + "=" + value
			if w := ask(first, "GET", "/api", "localhost", "Cookie", cookie); w.Code != 204 {
				t.Fatalf("the cookie before = %d, want 204", w.Code)
			}
			var log bytes.Buffer
			h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, SignOuts: broken(openStore(t)), Log: slog.New(slog.NewTextHandler(&log, nil))})
			wantStatus(t, "a cookie of before", 401, ask(h, "GET", "/api", "localhost", "Cookie", cookie))
			if !strings.Contains(log.String(), "every browser must sign in again") {
				t.Errorf("the log has %q, want that sign-outs cannot be read", log.String())
			}
			wantStatus(t, "a new cookie", 204, ask(h, "GET", "/api", "localhost", "Cookie", entered(t, h, tokens)))
			wantStatus(t, "the token", 204, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+tokens.Token().Reveal()))
		})
	}
}

// TestSignOutUnkept: a sign-out that cannot be kept holds here, and says so.
func TestSignOutUnkept(t *testing.T) {
	tokens, db := open(t), openStore(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, SignOuts: func() (*store.Store, error) { return db, nil }})
	cookie := entered(t, h, tokens)
	db.Close()
	w := ask(h, "POST", LogoutPath, "localhost", "Cookie", cookie, "Origin", "http://localhost")
	wantProblem(t, w, "unavailable")
	if c, _ := cookieOf(t, w); w.Code != 503 || c == nil || c.MaxAge >= 0 {
		t.Errorf("a sign-out without a store = %d %v, want 503 and the cookie taken away", w.Code, w.Header())
	}
	wantStatus(t, "the cookie then", 401, ask(h, "GET", "/api", "localhost", "Cookie", cookie))
}

// TestSignOutsOverflow: when they are too many, that is kept too, and what was
// given after it is good after a restart.
func TestSignOutsOverflow(t *testing.T) {
	tokens, db := open(t), openStore(t)
	keep := func() (*store.Store, error) { return db, nil }
	j := newJar(tokens)
	j.remember(keep, slog.New(slog.DiscardHandler))
	end := time.Now().Add(time.Hour)
	for i := range mostVoid { // those of this process
		j.gone.add(fmt.Sprint(i), end)
	}
	testkit.OK(t, j.void(context.Background(), "last"))
	before := j.gone.before
	if before == 0 {
		t.Fatal("too many sign-outs void nothing else")
	}
	again := newJar(tokens)
	again.remember(keep, slog.New(slog.DiscardHandler))
	now := time.Now()
	if !again.gone.has("other", before-1, now) || again.gone.has("other", before, now) || again.gone.before != before {
		t.Errorf("after a restart all before %d is void, want %d", again.gone.before, before)
	}
	testkit.Equal(t, "are remembered that are older", len(again.gone.until), 0)
}
