package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/dirs"
)

// TestProjectLinks: a project's files are read through links within it only. Errors
// quote a file, so a link to another would show what is in that.
func TestProjectLinks(t *testing.T) {
	for _, name := range []string{".ken/ken.yaml", "context/tool-access.json"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			secret, project := filepath.Join(dir, "secret"), filepath.Join(dir, "ws")
			link := filepath.Join(project, name)
			for _, err := range []error{
				os.WriteFile(secret, []byte("AWS_SECRET_4711: x\n"), 0o600), os.MkdirAll(filepath.Dir(link), 0o700), os.Mkdir(filepath.Join(dir, "home"), 0o700),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(secret, link); err != nil {
				t.Skip("cannot here: ", err)
			}
			env := map[string]string{"HOME": dir, "KEN_HOME": filepath.Join(dir, "home")}
			places, err := dirs.New(func(name string) string { return env[name] }, project)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Load(places, "")
			if text := fmt.Sprint(err); !strings.Contains(text, "leads out of the project") || strings.Contains(text, "4711") {
				t.Errorf("Load() = %v, want that the link leads out of the project", err)
			}
		})
	}
}
