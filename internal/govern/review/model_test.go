package review_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestModel plays with some desks on one store, packages that change under them
// and people who act on what they saw a while ago, and compares every answer
// with a plain account of what was said.
func TestModel(t *testing.T) {
	testkit.CI(t, "goes through a hundred histories")
	address := storetest.Address(t)
	stores := []*store.Store{storetest.Open(t, address), storetest.Open(t, address)} // as two processes have
	forms := variants(t)
	var books []*review.Book
	for _, m := range forms {
		books = append(books, bookOf(m))
	}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++ // a tenant of its own is a world of its own
		who := review.Word{By: capability.Principal{ID: "pia", Tenant: strconv.Itoa(n)}, Origin: capability.ByPerson}
		var err error
		desks := make([]*review.Desk, 2)
		open := func(i int) {
			if desks[i], err = review.New(stores[i], review.Config{}); err != nil {
				t.Fatal(err)
			}
		}
		open(0)
		open(1)
		type word struct {
			on     bool
			digest string
			count  int // of words that were said
		}
		type sight struct {
			shown review.Shown
			count int
		}
		said := map[review.Key]word{}
		seen := map[string]sight{} // by digest
		pick := func(t *rapid.T) (*review.Desk, *review.Manifest) {
			return desks[rapid.IntRange(0, 1).Draw(t, "desk")], rapid.SampledFrom(forms).Draw(t, "package")
		}
		t.Repeat(map[string]func(*rapid.T){
			"look": func(t *rapid.T) {
				d, m := pick(t)
				st := testkit.Must(d.Status(ctx, who.By.Tenant, m))(t)
				seen[m.Digest] = sight{st.Shown, said[m.Key()].count}
			},
			"enable": func(t *rapid.T) {
				d, m := pick(t)
				was, saw := said[m.Key()], seen[m.Digest]
				_, err := d.Enable(ctx, m, saw.shown, who)
				switch {
				case saw.shown.Digest == "":
					if !errors.Is(err, review.ErrChanged) {
						t.Fatalf("Enable of what nobody saw = %v", err)
					}
				case was.on && was.digest == m.Digest:
					if err != nil {
						t.Fatalf("Enable of what is on = %v", err)
					}
				case saw.count != was.count:
					if !errors.Is(err, review.ErrSaid) {
						t.Fatalf("Enable after another word = %v", err)
					}
				case err != nil:
					t.Fatalf("Enable = %v", err)
				default:
					said[m.Key()] = word{true, m.Digest, was.count + 1}
				}
			},
			"disable": func(t *rapid.T) {
				d, m := pick(t)
				testkit.Must(d.Disable(ctx, m.Key(), who))(t)
				said[m.Key()] = word{count: said[m.Key()].count + 1}
			},
			"restart": func(t *rapid.T) { open(rapid.IntRange(0, 1).Draw(t, "desk")) },
			"": func(t *rapid.T) {
				for _, d := range desks {
					on := d.Switches(ctx, who.By.Tenant)
					for i, m := range forms {
						want, w := review.Unreviewed, said[m.Key()]
						switch {
						case w.on && w.digest == m.Digest:
							want = review.Enabled
						case w.on:
							want = review.Differs
						case w.count > 0:
							want = review.Disabled
						}
						if got := on.State(m); got != want {
							t.Fatalf("State(%s) = %s, want %s", m.Digest, got, want)
						}
						if want == review.Enabled || i == len(said)%len(forms) { // each Check costs a Get
							if err := d.Check(ctx, who.By.Tenant, books[i], m.Actions[0]); (err == nil) != (want == review.Enabled) {
								t.Fatalf("Check(%s) = %v, want it %s", m.Digest, err, want)
							}
						}
					}
				}
			},
		})
	})
}

// variants returns two packages in two forms each.
func variants(t *testing.T) []*review.Manifest {
	var out []*review.Manifest
	for _, place := range []string{"/p/x", "/q/x"} {
		for _, program := range []string{"x", "y"} {
			x, a := base()
			x.Origin.Path, a.Origin.Path = filepath.FromSlash(place+"/manifest.json"), filepath.FromSlash(place+"/commands.yaml")
			a.Run.Argv = []string{program}
			m := made(review.Of(x, []*capability.Capability{a}))
			out = append(out, m)
		}
	}
	return out
}
