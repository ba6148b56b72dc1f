package app

import (
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/testkit"
)

// TestWhoSeesIsAVersion: whatever decides anew what models see of the catalog
// makes a version of it: those who keep a list of it, as MCP clients do, wait
// for one.
func TestWhoSeesIsAVersion(t *testing.T) {
	testkit.CI(t, "waits for files to be noticed")
	dir, getenv := home(t, map[string]string{".ken/ken.yaml": "catalog: {watch: false}\n"})
	if err := os.CopyFS(filepath.Join(dir, ".ken", "extensions", "text"), os.DirFS(filepath.FromSlash("../../examples/extensions/text"))); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	a := open(t, Config{Getenv: getenv, Dir: work})
	there := func(want bool) {
		t.Helper()
		n := 0
		for e := range a.View().All() {
			if name, ok := e.Extension(); ok && name == "tools.text" {
				n++
			}
		}
		if (n > 1) != want { // the package itself is seen in any case
			t.Errorf("%d capabilities of the package are seen, want its actions: %v", n, want)
		}
	}
	at := a.View().Stats().Version
	newer := func(why string) {
		t.Helper()
		news, err := a.Door.Next(t.Context(), a.Principal, at)
		if err != nil {
			t.Fatalf("%s: Next(%d) = %v", why, at, err)
		}
		if news.Complete {
			t.Errorf("%s: changes %v are called complete, and who saw what before is not known", why, news.Changes)
		}
		at = news.View.Stats().Version
	}
	r, by := a.reviews(), auth.Identity{Principal: capability.Principal{ID: "chief"}, Operator: true}
	seen := reviewNamed(t, r, "tools.text")
	there(false)
	if err := r.Accept(t.Context(), by, "tools.text", seen.Digest, ""); err != nil {
		t.Fatal(err)
	}
	newer("accepted here")
	there(true)
	if err := r.Accept(t.Context(), by, "tools.text", seen.Digest, ""); err != nil {
		t.Fatal(err)
	}
	if got := a.View().Stats().Version; got != at {
		t.Errorf("accepting what is on made version %d of %d", got, at)
	}

	watch(t, a)
	other := open(t, Config{Getenv: getenv, Dir: work})
	if _, err := other.Extensions.Disable(t.Context(), other.Principal, "tools.text", "", ""); err != nil {
		t.Fatal(err)
	}
	newer("switched off by another process")
	there(false)
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "catalog: {watch: false}\npolicy: {profile: locked}\n")
	newer("other rules")
}
