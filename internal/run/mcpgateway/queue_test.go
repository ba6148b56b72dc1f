package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestQueueTakesTurns: calls of several sessions are let on in turn, however
// many one of them has waiting, and those of several principals, however many
// sessions one of them has. Each call is that of a session, of the principal
// before the slash.
func TestQueueTakesTurns(t *testing.T) {
	for _, test := range []struct{ name, come, want string }{
		{"one floods", "a a a a a a a a b c", "a b c a a a a a a a"},
		{"they come mixed", "a a b b c a", "a b c a b a"},
		{"one alone", "a a a", "a a a"},
		{"one with many sessions", "p/a p/b p/c p/d q/a q/a", "p/a q/a p/b q/a p/c p/d"},
		{"sessions within one", "p/a p/a p/a p/b q/a r/a", "p/a q/a r/a p/b p/a p/a"},
		{"two with sessions of one name", "p/a p/a q/a", "p/a q/a p/a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(1)
				if err := q.enter(t.Context(), whose{session: "first"}); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, one := range strings.Fields(test.come) {
					principal, session, named := strings.Cut(one, "/")
					if !named {
						principal, session = "", one
					}
					go func() {
						if err := q.enter(t.Context(), whose{person{principal: principal}, session}); err != nil {
							t.Error(err)
						}
						got = append(got, one) // one place: no other holds one
						time.Sleep(time.Second)
						q.leave()
					}()
					synctest.Wait() // so that they come in this order
				}
				q.leave()
				time.Sleep(time.Minute)
				synctest.Wait()
				want := strings.Fields(test.want)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("let on in the order %v, want %v", got, want)
				}
				if len(q.order) != 0 || len(q.line) != 0 || q.free != 1 {
					t.Errorf("what is left: %+v", q)
				}
			})
		})
	}
}

// TestQueueGivesUp: who gives up takes no place with him.
func TestQueueGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		if err := q.enter(t.Context(), whose{}); err != nil {
			t.Fatal(err)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- q.enter(ctx, whose{session: "a"}) }()
		synctest.Wait()
		cancel(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("enter = %v, want %v", err, why)
		}
		q.leave()
		if q.free != 1 || len(q.order) != 0 || len(q.line) != 0 {
			t.Errorf("what is left: %+v, want one free place and no line", q)
		}
	})
}

// TestQueueHolds: however callers come, wait and give up, the places in use never
// exceed the limit, and in the end every place is free.
func TestQueueHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(rt, "most")
		calls := rapid.SliceOfN(rapid.IntRange(0, 999), 1, 60).Draw(rt, "calls")
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(most)
			var on, peak, served, left atomic.Int64
			for i, n := range calls {
				go func() {
					time.Sleep(time.Duration(n%7) * time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+n%40)*time.Second)
					defer cancel()
					if q.enter(ctx, whose{person{principal: fmt.Sprint(n % 3)}, fmt.Sprint(n % 5)}) != nil {
						left.Add(1)
						return
					}
					now := on.Add(1)
					for was := peak.Load(); now > was && !peak.CompareAndSwap(was, now); was = peak.Load() {
					}
					time.Sleep(time.Duration(1+(n+i)%9) * time.Second)
					on.Add(-1)
					served.Add(1)
					q.leave()
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if peak.Load() > int64(most) || served.Load()+left.Load() != int64(len(calls)) || q.free != most || len(q.order)+len(q.line) != 0 {
				t.Fatalf("%d on at once of %d, %d served and %d left of %d, then %+v", peak.Load(), most, served.Load(), left.Load(), len(calls), q)
			}
		})
	})
}
