package main

import (
	"archive/zip"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

const (
	path    = "example.com/published/ken"
	version = "v0.1.0"
)

// longest is how long all go commands of a test may take together, on a slow and
// busy machine too.
const longest = 20 * time.Minute

// TestPublishedModule publishes the checkout under another path, puts it into a
// local module proxy, and lets a foreign module get it from there. With -short
// the packages that need few others are built, and of all others, tests too, the imports
// are resolved; without it the library and the program are built whole.
func TestPublishedModule(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("not a git checkout: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()

	copied := filepath.Join(t.TempDir(), "copy")
	n, err := publish(root, copied, path)
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 {
		t.Errorf("%d files changed, want most Go files", n)
	}
	if out := run(t, ctx, copied, "list", "-e", "-deps", "-test", "-f", "{{with .Error}}{{.}}{{end}}", "./..."); strings.TrimSpace(out) != "" {
		t.Errorf("the copy does not build:\n%s", out)
	}

	proxy := t.TempDir()
	upload(t, proxy, copied)
	foreign := t.TempDir()
	write(t, foreign, "main.go", `package main

import (
	"context"
	"fmt"

	"`+path+`"
	"`+path+`/capability"
)

func main() {
	ken.Helper()
	_, err := ken.Open(context.Background(), ken.Config{})
	fmt.Println(capability.KindOf(err))
}
`)
	run(t, ctx, foreign, "mod", "init", "example.org/foreign")
	env := []string{"GOPROXY=" + proxies(t, proxy), "GOMODCACHE=" + cache(t), "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0"}
	run(t, ctx, foreign, "get", path+"@"+version, env)
	if mod := read(t, filepath.Join(foreign, "go.mod")); !strings.Contains(mod, path+" "+version) {
		t.Fatalf("go get left this go.mod:\n%s", mod)
	}
	if testing.Short() {
		run(t, ctx, foreign, "build", path+"/capability", path+"/llm", path+"/plugin", env)
		if out := run(t, ctx, foreign, "list", "-e", "-deps", "-f", "{{with .Error}}{{.}}{{end}}", ".", path+"/cmd/ken", env); strings.TrimSpace(out) != "" {
			t.Errorf("the foreign module does not build:\n%s", out)
		}
		return
	}
	run(t, ctx, foreign, "build", "-o", filepath.Join(t.TempDir(), "ken"), path+"/cmd/ken", env)
	if out := run(t, ctx, foreign, "run", ".", env, []string{"KEN_HOME="}); out != "invalid\n" {
		t.Errorf("the foreign program printed %q", out)
	}
}

// TestRewrite: what names the module or a package of it is changed, and nothing
// else.
func TestRewrite(t *testing.T) {
	r := newRewriter("ken", "example.com/k", []string{"internal", "capability", "web"})
	tests := []struct{ name, text, want string }{
		{"go.mod", "module ken\n\nrequire example.org/ken v1.0.0\n", "module example.com/k\n\nrequire example.org/ken v1.0.0\n"},
		{"a.go", "import \"ken\"\n", "import \"example.com/k\"\n"},
		{"a.go", "import (\n\t\"ken\"\n\tk \"ken\" // us\n\t\"ken/capability\"\n)\n", "import (\n\t\"example.com/k\"\n\tk \"example.com/k\" // us\n\t\"example.com/k/capability\"\n)\n"},
		{"a.go", "\tname := \"ken\"\n", "\tname := \"ken\"\n"},
		{"a.go", "var p = \"ken/internal/x\" // see [ken/capability.ID]\n", "var p = \"example.com/k/internal/x\" // see [example.com/k/capability.ID]\n"},
		{"a.go", "const key = \"ken/handle\"\n", "const key = \"ken/handle\"\n"},
		{"a.go", "// ~/.ken/web and /srv/ken/web are folders; so is ken/website\n", "// ~/.ken/web and /srv/ken/web are folders; so is ken/website\n"},
		{"a.go", "// github.com/other/ken/internal is not ours\n", "// github.com/other/ken/internal is not ours\n"},
		{"docs/a.md", "`go doc -all ken` and `go get ken`, then ken serve\n", "`go doc -all example.com/k` and `go get example.com/k`, then ken serve\n"},
		{".ci/a.sh", "grep -vx ken/internal\n", "grep -vx example.com/k/internal\n"},
		{"x/testdata/a.go", "import \"ken\"\n", "import \"ken\"\n"},
		{"web/dist/a.js", "ken/internal", "ken/internal"},
	}
	for _, tt := range tests {
		if got := string(r.text(tt.name, []byte(tt.text))); got != tt.want {
			t.Errorf("%s: %q became %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}

// TestRefused: a mistake is an error before anything is written.
func TestRefused(t *testing.T) {
	root, full, empty := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, root, "go.mod", "module ken\n")
	write(t, full, "file", "x")
	for _, tt := range []struct{ root, out, path, want string }{
		{root, full, "ken", "malformed module path"},
		{root, full, "example.com/a b", "malformed module path"},
		{root, full, "", "malformed module path"},
		{empty, full, path, "go.mod"},
		{root, empty, path, "git checkout"},
		{"../..", full, path, "is not empty"},
	} {
		if _, err := publish(tt.root, tt.out, tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("publish(%q, %q, %q): %v, want %q in it", tt.root, tt.out, tt.path, err, tt.want)
		}
	}
}

// TestInPlace: the checkout itself is changed, and only where it has to be.
func TestInPlace(t *testing.T) {
	root := t.TempDir()
	write(t, root, "go.mod", "module ken\n")
	write(t, root, "a.go", "package ken\n")
	write(t, root, "cmd/x/main.go", "package main\n\nimport _ \"ken\"\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	if n, err := publish(root, root, path); err != nil || n != 2 {
		t.Errorf("publish in place: %d files changed, %v; want 2", n, err)
	}
	if got := read(t, filepath.Join(root, "cmd/x/main.go")); !strings.Contains(got, `"`+path+`"`) {
		t.Errorf("main.go is %q", got)
	}
}

// upload puts the copy into a module proxy, which is a folder.
func upload(t *testing.T, proxy, copied string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	write(t, dir, "list", version+"\n")
	write(t, dir, version+".info", `{"Version":"`+version+`"}`)
	write(t, dir, version+".mod", read(t, filepath.Join(copied, "go.mod")))
	var b bytes.Buffer
	if err := modzip.CreateFromDir(&b, module.Version{Path: path, Version: version}, copied); err != nil {
		t.Fatalf("a module cannot hold all files: %v", err)
	}
	if _, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
		t.Fatal(err)
	}
	write(t, dir, version+".zip", b.String())
}

// proxies returns GOPROXY: ours, and the downloads of this machine for what
// Ken depends on. No other address is asked.
func proxies(t *testing.T, ours string) string {
	t.Helper()
	downloads := filepath.Join(modCache(t), "cache", "download")
	return "file://" + filepath.ToSlash(ours) + ",file://" + filepath.ToSlash(downloads) + ",off"
}

// modCache returns the module cache of this machine, which has what Ken depends
// on.
func modCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// cache returns a module cache that shows the modules of the machine's own and
// takes new ones without changing that.
func cache(t *testing.T) string {
	t.Helper()
	out, own := t.TempDir(), modCache(t)
	for _, dir := range []string{".", filepath.Join("cache", "download")} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadDir(filepath.Join(own, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Name() == "cache" || e.Name() == strings.Split(path, "/")[0] || e.Type() != fs.ModeDir {
				continue
			}
			if err := os.Symlink(filepath.Join(own, dir, e.Name()), filepath.Join(out, dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// run runs a go command in a folder; arguments that are lists belong to its
// environment.
func run(t *testing.T, ctx context.Context, dir string, args ...any) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PWD="+dir)
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			cmd.Args = append(cmd.Args, arg)
		case []string:
			cmd.Env = append(cmd.Env, arg...)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, &stdout, &stderr)
	}
	t.Logf("%s: %s", cmd, time.Since(start).Round(time.Millisecond))
	return stdout.String()
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
