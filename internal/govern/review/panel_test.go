package review_test

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/testkit/storetest"
)

// TestPanel: the panel follows switches of any process and the catalog, and its
// version tells.
func TestPanel(t *testing.T) {
	m, _, a := small()
	s := storetest.Open(t, storetest.SQLite(t))
	d, other := newDesk(t, s, review.Config{}), newDesk(t, s, review.Config{})
	book := bookOf(m)
	p := d.Panel(pia.Tenant, func() *review.Book { return book })
	if why, mend := p.Off(a); !strings.Contains(why, "has not been reviewed") || mend == "" {
		t.Errorf("Off before anything = %q, %q", why, mend)
	}
	last := p.Version()
	grew := func(what string, want bool) {
		t.Helper()
		v := p.Version()
		if got := v > last; got != want {
			t.Errorf("after %s the version went from %d to %d, want a new one: %v", what, last, v, want)
		}
		last = v
	}
	grew("nothing", false)
	enable(t, other, m)
	grew("Enable", true)
	if why, _ := p.Off(a); why != "" {
		t.Errorf("Off after Enable = %q", why)
	}
	b := twin(t, a)
	b.Run.Argv = []string{"y"}
	now := made(review.Of(m.Package, []*capability.Capability{b}))
	book = bookOf(now)
	if why, _ := p.Off(b); !strings.Contains(why, "differs from the accepted version") {
		t.Errorf("Off after a change of the catalog = %q", why)
	}
	grew("a change of the catalog", true)
	book = bookOf(m)
	grew("its end", true)
	disable(t, other, m, yes(""))
	// The panel still shows what it saw; the call is refused, and then it knows.
	if why, _ := p.Off(a); why != "" {
		t.Errorf("Off without a look = %q", why)
	}
	wantKind(t, p.Check(ctx, a), capability.Denied, nil, "disabled it")
	if why, _ := p.Off(a); !strings.Contains(why, "disabled it") {
		t.Errorf("Off after Check = %q", why)
	}
	grew("Disable", true)
	enable(t, other, m)
	if err := p.Check(ctx, a); err != nil {
		t.Errorf("Check after Enable = %v", err)
	}
	grew("Enable", true)
	s.Close()
	wantKind(t, p.Check(ctx, a), capability.Unavailable, nil, "cannot read whether it was accepted")
	grew("the store's end", true)
	grew("nothing", false)
	if why, _ := p.Off(a); !strings.Contains(why, "cannot read whether it was accepted") {
		t.Errorf("Off without a store = %q", why)
	}
	if err := p.Check(ctx, m.Package); err != nil {
		t.Errorf("Check(what needs no review) = %v", err)
	}
}
