// Publishas gives the module another path: it writes a copy of the tracked files
// in which go.mod, imports, scripts and docs have that path, or changes the
// checkout itself. scripts/publish-as runs it.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

func main() {
	root := flag.String("root", ".", "the checkout")
	out := flag.String("o", "", "where to write the copy: an empty folder, or one that does not exist (default .cache/publish of the checkout)")
	inPlace := flag.Bool("in-place", false, "change the checkout instead of a copy")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/publish-as [-o FOLDER | -in-place] PATH")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *inPlace && *out != "" {
		flag.Usage()
		os.Exit(2)
	}
	switch {
	case *inPlace:
		*out = *root
	case *out == "":
		*out = filepath.Join(*root, ".cache", "publish")
	}
	n, err := publish(*root, *out, flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish-as:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: module %s, %d files changed\n", *out, flag.Arg(0), n)
}

// publish writes the tracked files of the checkout root to the folder out, as
// the module path, and returns how many of them differ. If out is root, the
// checkout itself is changed.
func publish(root, out, path string) (changed int, err error) {
	if err := module.CheckPath(path); err != nil { // it begins with a host
		return 0, fmt.Errorf("%w; use a path like example.com/you/ken", err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return 0, err
	}
	old := moduleLine.FindSubmatch(mod)
	if old == nil {
		return 0, fmt.Errorf("%s has no module line", filepath.Join(root, "go.mod"))
	}
	list, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		return 0, fmt.Errorf("list the tracked files of %s: %w; it must be a git checkout", root, err)
	}
	files := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	if out != root {
		if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
			return 0, fmt.Errorf("%s is not empty; remove it or name another folder with -o", out)
		}
	}
	r := newRewriter(string(old[1]), path, folders(files))
	for _, name := range files {
		differs, err := r.file(root, out, name)
		if err != nil {
			return changed, err
		}
		if differs {
			changed++
		}
	}
	return changed, nil
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

// folders returns the top-level folders that hold Go packages.
func folders(files []string) []string {
	var out []string
	for _, name := range files {
		if top, _, below := strings.Cut(name, "/"); below && strings.HasSuffix(name, ".go") && !slices.Contains(out, top) {
			out = append(out, top)
		}
	}
	return out
}

// A rewriter replaces one module path by another.
type rewriter struct {
	path     []byte
	packages *regexp.Regexp // a package below the module, with what stands before it
	root     *regexp.Regexp // an import of the module itself
	command  *regexp.Regexp // a go command about the module itself
}

func newRewriter(old, path string, folders []string) *rewriter {
	quoted := regexp.QuoteMeta(old)
	for i := range folders {
		folders[i] = regexp.QuoteMeta(folders[i])
	}
	return &rewriter{
		path: []byte(path),
		// A path that goes on to the left, such as ~/.ken/web, is another one.
		packages: regexp.MustCompile(`(^|[^\w./~@-])` + quoted + `(/(?:` + strings.Join(folders, "|") + `)\b)`),
		root:     regexp.MustCompile(`(?m)^((?:import |\t)(?:\w+ )?")` + quoted + `("(?:\s*//.*)?)$`),
		command:  regexp.MustCompile(`\b(go (?:doc|get|list)(?: -\w+)* )` + quoted + `(\W)`),
	}
}

// file copies one file, rewritten, and reports whether that changed it.
func (r *rewriter) file(root, out, name string) (differs bool, err error) {
	from, to := filepath.Join(root, filepath.FromSlash(name)), filepath.Join(out, filepath.FromSlash(name))
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("%s is tracked and not there; restore it or commit its removal", name)
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is not a plain file, which a module cannot hold", name)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	published := r.text(name, data)
	differs = !bytes.Equal(published, data)
	if out == root && !differs {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return false, err
	}
	return differs, os.WriteFile(to, published, info.Mode().Perm())
}

// text returns a file's text with the new path. Test data and what is not text
// stay as they are.
func (r *rewriter) text(name string, data []byte) []byte {
	switch base := filepath.Base(name); {
	case name == "go.mod":
		return moduleLine.ReplaceAll(data, append([]byte("module "), r.path...))
	case strings.Contains("/"+name, "/testdata/"):
		return data
	case strings.HasSuffix(base, ".go"):
		data = replace(r.root, data, r.path)
	case !slices.Contains([]string{".md", ".sh", ".yaml", ".yml"}, filepath.Ext(base)) && base != "Makefile":
		return data
	}
	data = replace(r.packages, data, r.path)
	return replace(r.command, data, r.path)
}

// replace replaces what stands between the two groups of a pattern.
func replace(pattern *regexp.Regexp, data, path []byte) []byte {
	if !pattern.Match(data) {
		return data
	}
	return pattern.ReplaceAllFunc(data, func(match []byte) []byte {
		parts := pattern.FindSubmatch(match)
		return slices.Concat(parts[1], path, parts[2])
	})
}
