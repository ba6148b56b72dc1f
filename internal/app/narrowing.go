package app

import (
	"bufio"
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/internal/address"
	"ken/internal/run/sandbox"
)

// A narrowing gathers what a server needs.
type narrowing struct {
	app                *App
	search             string
	env                map[string]string
	read, write, hosts []string
	against            []string // why it cannot be held closer
}

// reference is a name that a definition uses for a value. Secrets are no paths.
var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
})

func (n *narrowing) expand(text string) string {
	return reference().ReplaceAllStringFunc(text, func(found string) string {
		m := reference().FindStringSubmatch(found)
		return cmp.Or(n.app.getenv(m[1]), strings.TrimPrefix(m[2], ":-"))
	})
}

func (n *narrowing) find(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	for _, dir := range filepath.SplitList(n.search) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

// mostScripts is how deep programs may be written in terms of others.
const mostScripts = 4

// program lets a program be seen with what it is installed with, wherever links
// lead, and the one that interprets it.
func (n *narrowing) program(name string, depth int) {
	if name == "" || depth > mostScripts {
		return
	}
	n.read = append(n.read, n.installed(name))
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return
	}
	if real != name {
		n.read = append(n.read, n.installed(real))
	}
	// A link may lead over another: each place on the way must be there.
	if to, err := os.Readlink(name); err == nil && filepath.IsAbs(to) {
		n.read = append(n.read, n.installed(to))
	}
	f, err := os.Open(real)
	if err != nil {
		return
	}
	defer f.Close()
	first, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n') // what there is
	line, ok := strings.CutPrefix(string(first), "#!")
	if words := strings.Fields(line); ok && len(words) > 0 {
		if filepath.Base(words[0]) == "env" && len(words) > 1 {
			words[0] = n.find(words[len(words)-1])
		}
		n.program(words[0], depth+1)
	}
}

// installed returns the folder that a program came with.
func (n *narrowing) installed(program string) string {
	dir := filepath.Dir(program)
	if root, ok := modules(program); ok {
		return root
	}
	prefix := filepath.Dir(dir)
	if filepath.Base(dir) != "bin" || n.wide(prefix) || filepath.Base(prefix) == ".local" {
		return dir
	}
	return prefix
}

// modules returns the outermost node_modules that a file is in: what a package
// needs may lie beside it.
func modules(file string) (string, bool) {
	const part = "/node_modules/"
	if i := strings.Index(file, part); i >= 0 {
		return file[:i+len(part)-1], true
	}
	return "", false
}

// code are the endings of files that are programs.
var code = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".php", ".jar", ".lua", ".pl", ".sh"}

// packageOf returns the folder of the package that a program's file is in.
func (n *narrowing) packageOf(file string) string {
	if root, ok := modules(file); ok {
		return root
	}
	own := filepath.Dir(file)
	for dir := own; !n.wide(dir); dir = filepath.Dir(dir) {
		for _, sign := range []string{"package.json", "node_modules", "pyproject.toml", "pyvenv.cfg", ".venv", "venv", "setup.py", "go.mod", "Cargo.toml"} {
			if _, err := os.Stat(filepath.Join(dir, sign)); err == nil {
				return dir
			}
		}
	}
	if n.wide(own) {
		return file
	}
	return own
}

// wide reports whether to show a folder is to show everything.
func (n *narrowing) wide(dir string) bool {
	inside := func(path string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	if inside(n.app.Places.Home) || n.app.Places.UserHome != "" && inside(n.app.Places.UserHome) {
		return true
	}
	return dir == "/" || dir == os.TempDir() || filepath.Dir(dir) == "/" && !slices.Contains(sandbox.SystemPaths(), dir)
}

// argument looks for what an argument names. cwd is where relative ones began.
func (n *narrowing) argument(text, cwd string) {
	if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
		text = value
	}
	if strings.Contains(text, "/") && !filepath.IsAbs(text) && !strings.Contains(text, "://") && cwd != "" && filepath.IsLocal(text) {
		if _, err := os.Stat(filepath.Join(cwd, text)); err == nil {
			n.against = append(n.against, fmt.Sprintf("it names %s by a relative path; write %s to have it held closer", text, filepath.Join(cwd, text)))
		}
		return
	}
	n.value(text, false)
}

// private tells variables that name a file which is read and not written.
var private = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)credential|cert|key|secret|token|config|_ca`)
})

func (n *narrowing) variable(name, text string) {
	readOnly := private().MatchString(name)
	for _, one := range filepath.SplitList(text) {
		if filepath.IsAbs(one) {
			n.value(one, readOnly)
		}
	}
	n.value(text, readOnly)
}

func (n *narrowing) value(text string, readOnly bool) {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if scheme == "file" || strings.HasPrefix(scheme, "sqlite") {
			text = strings.TrimPrefix(rest, "//")
		} else {
			n.address(text)
			return
		}
	}
	if filepath.IsAbs(text) && len(text) < 4096 && !strings.ContainsRune(text, 0) {
		n.path(filepath.Clean(text), readOnly)
	}
}

// path lets a path be used that a definition names: a folder to work in, a file
// of a package to read, another file and its folder to write, for what is kept
// beside it.
func (n *narrowing) path(name string, readOnly bool) {
	info, err := os.Stat(name)
	switch dir := filepath.Dir(name); {
	case err == nil && info.IsDir() && n.wide(name):
		n.against = append(n.against, "it is given all of "+name+"; name the folders in it that it needs to have it held closer")
	case err == nil && info.IsDir() && readOnly:
		n.read = append(n.read, name)
	case err == nil && info.IsDir():
		n.write = append(n.write, name)
	case err == nil && (slices.Contains(code, filepath.Ext(name)) || info.Mode()&0o111 != 0):
		n.read = append(n.read, n.packageOf(name))
		if real, err := filepath.EvalSymlinks(name); err == nil && real != name {
			n.read = append(n.read, n.packageOf(real))
		}
	case err == nil && readOnly:
		n.read = append(n.read, name)
	case err == nil && n.wide(dir):
		n.write = append(n.write, name)
	default: // or it is to be made
		if there, err := os.Stat(dir); err == nil && there.IsDir() && !n.wide(dir) {
			n.write = append(n.write, dir)
		}
	}
}

// address lets a host be reached.
func (n *narrowing) address(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.Contains(u.Host, "${") {
		return
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		n.against = append(n.against, "it talks "+u.Scheme+" to "+u.Host+", and a confined server reaches hosts by an HTTP proxy alone")
	case address.Near(host) && len(n.app.effective().Sandbox.Prefixes()) == 0:
		n.against = append(n.against, "it talks to "+u.Host+", which a confined server reaches only where sandbox.networks names its network")
	default:
		if port := u.Port(); port != "" && port != "80" && port != "443" {
			host = u.Host
		}
		if !slices.Contains(n.hosts, host) {
			n.hosts = append(n.hosts, host)
		}
	}
}

// outermost drops paths that lie in others of the list, or in one of those
// given.
func outermost(list, given []string) []string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	within := func(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
	var out []string
	for _, p := range list {
		if !slices.ContainsFunc(slices.Concat(out, given), func(dir string) bool { return within(p, dir) }) {
			out = append(out, p)
		}
	}
	return out
}
