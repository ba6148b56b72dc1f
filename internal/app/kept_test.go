package app

import (
	"os"
	"path/filepath"
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

// TestReviewOfAnExtension: what was seen is accepted, and nothing else.
func TestReviewOfAnExtension(t *testing.T) {
	dir, getenv := home(t, nil)
	if err := os.CopyFS(filepath.Join(dir, ".ken", "extensions", "text"), os.DirFS(filepath.FromSlash("../../examples/extensions/text"))); err != nil {
		t.Fatal(err)
	}
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	r, by := a.reviews(), auth.Identity{Principal: capability.Principal{ID: "chief"}, Operator: true}
	seen := reviewNamed(t, r, "tools.text")
	if !seen.Pending || seen.Kind != "extension" || seen.Digest == "" || len(seen.Changes) == 0 {
		t.Fatalf("before anybody looked: %+v", seen)
	}
	if err := r.Accept(t.Context(), by, "tools.text", "sha256:stale", ""); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Accept of another digest = %v, want Conflict", err)
	}
	if got := reviewNamed(t, r, "tools.text"); !got.Pending {
		t.Errorf("it was accepted all the same: %+v", got)
	}
	if err := r.Accept(t.Context(), by, "tools.nothing", seen.Digest, ""); err == nil {
		t.Error("Accept of what is not there works")
	}
	if err := r.Accept(t.Context(), by, "tools.text", seen.Digest, "used daily"); err != nil {
		t.Fatal(err)
	}
	if got := reviewNamed(t, r, "tools.text"); got.Pending {
		t.Errorf("after Accept: %+v", got)
	}
	if err := r.Disable(t.Context(), by, "tools.text", "", "no more"); err != nil {
		t.Fatal(err)
	}
	if got := reviewNamed(t, r, "tools.text"); got.State != "disabled" {
		t.Errorf("after Disable: %+v", got)
	}
}

// TestReviewOfAServer: tools are accepted as they were seen, and a word about
// something else does not switch a server on.
func TestReviewOfAServer(t *testing.T) {
	dir, getenv := home(t, nil)
	more := filepath.Join(t.TempDir(), "more")
	servers(t, filepath.Join(dir, ".ken", "mcp.json"), map[string]map[string]any{"s": {"env": map[string]string{"KEN_TEST_MORE": more}}})
	if err := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true}).Close(); err != nil {
		t.Fatal(err)
	}
	write(t, more, "") // an update of the server
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	a.Servers.List(t.Context(), "s")
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
