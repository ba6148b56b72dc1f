package grants

import (
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
	"ken/internal/dirs"
)

// A folder of policy.readRoots that holds Ken's own is handed to no program.
func TestRootsHoldNothingOfKen(t *testing.T) {
	dir := t.TempDir()
	places, err := dirs.New(func(name string) string { return map[string]string{"HOME": dir}[name] }, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(places.State, 0o700); err != nil {
		t.Fatal(err)
	}
	g := Granter{Private: PrivatePaths{Places: places, Checkpoints: places.Checkpoints}}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(places.State, link); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, "/", places.Home, places.State, link, filepath.Join(places.Home, "skills")} {
		if err := g.guardRoots(capability.Call{Target: "tool:shell"}, []string{t.TempDir(), root}); capability.KindOf(err) != capability.Denied {
			t.Errorf("guardRoots(%s) = %v, want it denied", root, err)
		}
	}
	if err := g.guardRoots(capability.Call{}, []string{t.TempDir(), "/usr/share"}); err != nil {
		t.Errorf("guardRoots of other folders = %v", err)
	}
}
