package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestGroup: two replicas take each other's tokens and signatures, until a token is
// removed, and nobody else's.
func TestGroup(t *testing.T) {
	db, err := store.Open(t.Context(), storetest.Address(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	join := func(seed string, tokens func() []Token) *Group {
		g, err := Join(ctx, Config{
			Store: func() (*store.Store, error) { return db, nil }, Dir: t.TempDir(), Seed: bytes.Repeat([]byte(seed), 32)[:32], Version: "1",
			Tokens: tokens, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		go g.Run(ctx)
		return g
	}
	owner, bot, link := sha256.Sum256([]byte("owner")), sha256.Sum256([]byte("bot")), sha256.Sum256([]byte("link"))
	var more atomic.Bool
	a := join("a", func() []Token {
		out := []Token{{Sum: owner, Kind: Owner}, {Sum: link, Kind: Link}}
		if more.Load() {
			out = append(out, Token{Sum: bot, Kind: Agent, Name: "bot"})
		}
		return out
	})
	b := join("b", func() []Token { return nil })
	if a.Name() == "" || a.Name() != b.Name() {
		t.Errorf("names %q and %q", a.Name(), b.Name())
	}
	is := func(g *Group, sum [sha256.Size]byte) string {
		o, ag, name := g.Bearer(sum)
		switch {
		case o:
			return "owner"
		case ag:
			return "agent " + name
		}
		return ""
	}
	testkit.Wait(t, "b takes a's token", func() bool { return is(b, owner) == "owner" && is(b, link) == "owner" })
	more.Store(true)
	testkit.Wait(t, "b takes a new token", func() bool { return is(b, bot) == "agent bot" })
	if n, err := Remove(ctx, db, "bot"); n != 1 || err != nil {
		t.Errorf("Remove = %d, %v", n, err)
	}
	testkit.Wait(t, "a token that was removed is gone", func() bool { return a.Gone(bot) && b.Gone(bot) && is(b, bot) == "" })
	if got := is(b, sha256.Sum256([]byte("x"))); got != "" {
		t.Errorf("an unknown token is %s", got)
	}
	signed := a.Sign("cookie", "text")
	testkit.Wait(t, "b knows a's key", func() bool { return b.Verify("cookie", "text", signed) })
	if b.Verify("login", "text", signed) || b.Verify("cookie", "text!", signed) || b.Verify("cookie", "text", nil) {
		t.Error("a signature counts for something else")
	}
	list, err := Members(ctx, db)
	if err != nil || len(list) != 2 || list[0].Version != "1" || list[0].Skew.Abs() > 5*time.Second || list[0].Links != nil {
		t.Errorf("Members = %+v, %v", list, err)
	}
}
