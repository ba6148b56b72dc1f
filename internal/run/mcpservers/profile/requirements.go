package profile

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

// requirements collects what a server needs.
type requirements struct {
	cfg                *Config
	search             string
	env                map[string]string
	read, write, hosts []string
	against            []string // why it cannot be confined
}

// reference matches a reference to a variable. Secrets are not paths, so their
// references do not match.
var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
})

func (n *requirements) expand(text string) string {
	return reference().ReplaceAllStringFunc(text, func(found string) string {
		m := reference().FindStringSubmatch(found)
		return cmp.Or(n.cfg.Getenv(m[1]), strings.TrimPrefix(m[2], ":-"))
	})
}

func (n *requirements) find(name string) string {
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

// maxScripts is how many interpreters a program may have that are scripts
// themselves.
const maxScripts = 4

// program adds a program, the folder that it is installed in, the targets of
// links to it, and its interpreter.
func (n *requirements) program(name string, depth int) {
	if name == "" || depth > maxScripts {
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
func (n *requirements) installed(program string) string {
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

// modules returns the outermost node_modules that contains a file, because it
// contains what the file's package needs.
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
func (n *requirements) packageOf(file string) string {
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

// wide reports whether a folder contains a home folder or is one of the system.
func (n *requirements) wide(dir string) bool {
	inside := func(path string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	if inside(n.cfg.KenHome) || n.cfg.UserHome != "" && inside(n.cfg.UserHome) {
		return true
	}
	return dir == "/" || dir == os.TempDir() || filepath.Dir(dir) == "/" && !slices.Contains(sandbox.SystemPaths(), dir)
}

// argument adds the path or address in an argument. cwd is the folder that a
// relative path starts from.
func (n *requirements) argument(text, cwd string) {
	if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
		text = value
	}
	if strings.Contains(text, "/") && !filepath.IsAbs(text) && !strings.Contains(text, "://") && cwd != "" && filepath.IsLocal(text) {
		if _, err := os.Stat(filepath.Join(cwd, text)); err == nil {
			n.objects(fmt.Sprintf("it names %s by a relative path; write %s, and it can be confined", text, filepath.Join(cwd, text)))
		}
		return
	}
	n.value(text, false)
}

// private matches the names of variables whose file is only read.
var private = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)credential|cert|key|secret|token|config|_ca`)
})

func (n *requirements) variable(name, text string) {
	readOnly := private().MatchString(name)
	for _, one := range filepath.SplitList(text) {
		if filepath.IsAbs(one) {
			n.value(one, readOnly)
		}
	}
	n.value(text, readOnly)
}

func (n *requirements) value(text string, readOnly bool) {
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

// objects notes a reason against confining the server, once.
func (n *requirements) objects(why string) {
	if !slices.Contains(n.against, why) {
		n.against = append(n.against, why)
	}
}

// path adds a path that a definition names: a folder for writing, a file of a
// package for reading, and of another file its folder for writing, because
// programs keep files beside it.
func (n *requirements) path(name string, readOnly bool) {
	info, err := os.Stat(name)
	switch dir := filepath.Dir(name); {
	case err == nil && info.IsDir() && n.wide(name):
		n.objects("it is given all of " + name + "; name only the folders that it needs, and it can be confined")
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
	case err != nil && !readOnly && (dir == n.cfg.UserHome || dir == os.TempDir()):
		n.objects(fmt.Sprintf("it names %s, which does not exist yet; name a file in a folder of its own, and it can be confined", name))
	default: // or it is to be made
		if there, err := os.Stat(dir); err == nil && there.IsDir() && !n.wide(dir) {
			n.write = append(n.write, dir)
		}
	}
}

// address adds the host of an address.
func (n *requirements) address(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.Contains(u.Host, "${") {
		return
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		n.objects("it talks " + u.Scheme + " to " + u.Host + ", and a confined server reaches hosts only through an HTTP proxy")
	case address.Near(host) && len(n.cfg.Networks()) == 0:
		n.objects("it talks to " + u.Host + ", which a confined server reaches only if sandbox.networks names its network")
	default:
		if port := u.Port(); port != "" && port != "80" && port != "443" {
			host = u.Host
		}
		if !slices.Contains(n.hosts, host) {
			n.hosts = append(n.hosts, host)
		}
	}
}

// outermost returns the paths of list that are not inside another one of list
// or given.
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
