package pin_test

import (
	"maps"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestModel plays with two desks on one store: a server whose tools come, go and
// change, a setting that changes, a person who accepts what was shown a while
// ago; and compares every verdict with a plain account.
func TestModel(t *testing.T) {
	testkit.CI(t, "goes through a hundred histories")
	address := storetest.Address(t)
	stores := []*store.Store{storetest.Open(t, address), storetest.Open(t, address)} // as two processes have
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		server := strconv.Itoa(n)
		prefixes := []string{"mcp/pin/", "mcp/text/", "mcp/mark/"}
		before := map[string]int{} // what a run that was cut short has left
		for _, prefix := range prefixes {
			before[prefix] = count(t, stores[0], prefix)
		}
		var policy pin.Policy
		desks := make([]*pin.Desk, 2)
		open := func(i int) {
			var err error
			if desks[i], err = pin.New(stores[i], pin.Config{Policy: func() pin.Policy { return policy }}); err != nil {
				t.Fatal(err)
			}
		}
		open(0)
		open(1)
		accepted, waits := map[string]string{}, map[string]string{} // tool → description
		exposed, hashes := map[string]string{}, map[string]string{} // tool → name; tool and description → hash
		first := true
		shown := map[string]string{}
		desk := func(t *rapid.T) *pin.Desk { return desks[rapid.IntRange(0, 1).Draw(t, "desk")] }
		t.Repeat(map[string]func(*rapid.T){
			"list": func(t *rapid.T) {
				listing := map[string]string{}
				var tools []pin.Tool
				for _, name := range []string{"a", "b", "c"} {
					if text := rapid.SampledFrom([]string{"", "one", "two", "three"}).Draw(t, name); text != "" {
						listing[name] = text
						one := named(name)
						one.Description = text
						tools = append(tools, one)
					}
				}
				got, err := desk(t).Check(ctx, server, tools)
				if err != nil || len(got) != len(listing) {
					t.Fatalf("Check = %v, %v", got, err)
				}
				for name, text := range listing {
					was, known := accepted[name]
					rule := policy.New
					if known {
						rule = policy.Changed
					}
					want := pin.Accepted
					switch {
					case known && was == text:
						delete(waits, name)
					case first || rule == pin.Accept:
						accepted[name] = text
						delete(waits, name)
					case known:
						want, waits[name] = pin.Changed, text
					default:
						want, waits[name] = pin.Added, text
					}
					v := got[name]
					if v.State != want || (v.Exposed == "") != (accepted[name] == "") || (v.Diff == "") != (want == pin.Accepted) {
						t.Fatalf("Check()[%s] = %+v, want %v", name, v, want)
					}
					if v.Exposed != "" {
						if exposed[name] != "" && exposed[name] != v.Exposed {
							t.Fatalf("the exposed name of %s was %s and is %s", name, exposed[name], v.Exposed)
						}
						exposed[name] = v.Exposed
					}
					key := name + " " + text
					if hashes[key] != "" && hashes[key] != v.Hash {
						t.Fatalf("the hash of %s was %s and is %s", key, hashes[key], v.Hash)
					}
					hashes[key] = v.Hash
				}
				first = first && len(listing) == 0
			},
			"look": func(t *rapid.T) {
				list := testkit.Must(desk(t).Pending(ctx, server))(t)
				clear(shown)
				want := map[string]string{}
				for name, text := range waits {
					want[name] = hashes[name+" "+text]
				}
				for _, w := range list {
					shown[w.Tool] = w.Hash
				}
				if !maps.Equal(shown, want) {
					t.Fatalf("Pending = %v, want %v", shown, want)
				}
			},
			"accept": func(t *rapid.T) {
				err := desk(t).Accept(ctx, server, shown, pia)
				stale := ""
				for name, hash := range shown {
					text, waiting := waits[name]
					if waiting && hashes[name+" "+text] != hash || !waiting && hashes[name+" "+accepted[name]] != hash {
						stale = name
					}
				}
				if stale != "" {
					if capability.KindOf(err) != capability.Conflict {
						t.Fatalf("Accept of %s, which is something else by now = %v", stale, err)
					}
					return
				}
				if err != nil {
					t.Fatalf("Accept(%v) = %v", shown, err)
				}
				for name := range shown {
					if text, waiting := waits[name]; waiting {
						accepted[name] = text
						delete(waits, name)
					}
				}
			},
			"policy": func(t *rapid.T) {
				policy = pin.Policy{
					New:     pin.Rule(rapid.IntRange(0, 1).Draw(t, "new")),
					Changed: pin.Rule(rapid.IntRange(0, 1).Draw(t, "changed")),
				}
			},
			"restart": func(t *rapid.T) { open(rapid.IntRange(0, 1).Draw(t, "desk")) },
		})
		testkit.OK(t, desks[0].Forget(ctx, server, pia))
		for _, prefix := range prefixes {
			if left := count(t, stores[0], prefix) - before[prefix]; left != 0 {
				t.Fatalf("after Forget %d keys are left at %s", left, prefix)
			}
		}
	})
}

func count(t *rapid.T, s *store.Store, prefix string) (n int) {
	for _, err := range s.Scan(ctx, prefix, store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
