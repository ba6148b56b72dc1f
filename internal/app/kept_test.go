package app

import (
	"testing"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/catalogapi"
	"ken/internal/serve/reviews"
)

// reviewNamed returns one of what waits.
func reviewNamed(t *testing.T, r reviews.List, name string) catalogapi.Review {
	t.Helper()
	list, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("%s is not among %+v", name, list)
	return catalogapi.Review{}
}

// TestReviewOfAServer: tools are accepted as they were seen, and a word about
// something else does not switch a server on.
func TestReviewOfAServer(t *testing.T) {
	a, _ := updated(t)
	r, by := a.reviews(), auth.Identity{Principal: capability.Principal{ID: "chief"}, Operator: true}
	seen := reviewNamed(t, r, "mcp:s")
	if !seen.Pending || seen.Kind != "server" || len(seen.Changes) == 0 {
		t.Fatalf("with tools that are new: %+v", seen)
	}
	if err := r.Disable(t.Context(), by, "mcp:s", "stale", ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Accept(t.Context(), by, "mcp:s", "stale", ""); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Accept of another digest = %v, want Conflict", err)
	}
	if s, err := a.Servers.Find("look at", "s"); err != nil || !s.Disabled {
		t.Errorf("the server is %+v, %v; want it off still", s, err)
	}
	off := reviewNamed(t, r, "mcp:s")
	if err := r.Accept(t.Context(), by, "mcp:s", off.Digest, "looked"); err != nil {
		t.Fatal(err)
	}
	if got := reviewNamed(t, r, "mcp:s"); got.Pending {
		t.Errorf("after Accept: %+v", got)
	}
	if s, err := a.Servers.Find("look at", "s"); err != nil || s.Disabled {
		t.Errorf("the server is %+v, %v; want it on", s, err)
	}
}
