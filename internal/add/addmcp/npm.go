package addmcp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
)

// A manifest is what a package.json says that matters here.
type manifest struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	MCPName     string          `json:"mcpName"` // of the server in registries, as the package says
	Repository  repository      `json:"repository"`
	Bin         json.RawMessage `json:"bin"`
}

const installTime = 10 * time.Minute

// npm installs a package and makes the definition that starts it. e is nil if no
// entry names the package.
func (s *Server) npm(ctx context.Context, q Request, e *entry, pkg, version string) error {
	var p pack
	if e != nil {
		chosen, _, err := e.usable()
		if err != nil {
			return err
		}
		p = *chosen
	} else if err := s.name(q, strings.TrimPrefix(path.Base(pkg), "mcp-server-")); err != nil {
		return err
	}
	args, missing, err := p.arguments(q.Args)
	if err != nil {
		return err
	}
	unset, err := s.variables(p.Environment, q.Env)
	if err != nil {
		return err
	}
	if missing = append(missing, unset...); len(missing) > 0 {
		return &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("values are missing: %s", strings.Join(missing, "; ")), Fix: "give arguments after --, and variables with --env NAME=VALUE"}
	}
	m, err := s.install(ctx, pkg, version)
	if err != nil {
		return err
	}
	if m.Name != pkg || version != "" && exactVersion().MatchString(version) && m.Version != version {
		return differs("npm installed %s@%s for %s@%s", m.Name, m.Version, pkg, version)
	}
	s.Package, s.Description = m.Name+"@"+m.Version, cmp.Or(s.Description, m.Description)
	if e != nil {
		if err := s.compare(e, m); err != nil {
			return err
		}
	}
	command, err := s.command(m)
	if err != nil {
		return err
	}
	s.Definition.Command, s.Definition.Args = command[0], append(command[1:], args...)
	return nil
}

// compare refuses a package that is not the server of an entry.
func (s *Server) compare(e *entry, m *manifest) error {
	switch m.MCPName {
	case e.Name:
	case "":
		s.note("the package does not say that it is the server %s", e.Name)
	default:
		return differs("it is about the server %s, and the package %s says that it is %s", e.Name, m.Name, m.MCPName)
	}
	if a, b := sameRepository(e.Repository.URL), sameRepository(m.Repository.URL); a != "" && b != "" && a != b {
		s.note("the entry names the repository %s, and the package %s", e.Repository.URL, m.Repository.URL)
	}
	return nil
}

// sameRepository returns an address in a form that can be compared.
func sameRepository(text string) string {
	text = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(text, "/"), ".git"))
	if i := strings.Index(text, "://"); i >= 0 {
		text = text[i+3:]
	}
	return strings.TrimPrefix(strings.Replace(text, "github:", "github.com/", 1), "git@")
}

// install installs a package into a new folder, without its scripts.
func (s *Server) install(ctx context.Context, pkg, version string) (*manifest, error) {
	if err := os.MkdirAll(s.cfg.Packages, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.Folder, err = os.MkdirTemp(s.cfg.Packages, s.Name+"-"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.Folder, "package.json"), []byte("{\"name\": \"added\", \"private\": true}\n"), 0o600); err != nil {
		return nil, err
	}
	spec := pkg + "@" + cmp.Or(version, "latest")
	argv := []string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--save-exact", "--no-update-notifier", "--loglevel=error", "--", spec}
	if err := s.run(ctx, argv); err != nil {
		return nil, &capability.Error{Kind: capability.Unavailable, Err: fmt.Errorf("install %s: %w", spec, err), Fix: "check the name of the package, and that npm reaches its registry"}
	}
	lock, err := os.ReadFile(filepath.Join(s.Folder, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(lock)
	s.Digest = "sha256:" + hex.EncodeToString(sum[:])
	s.scripts(lock)
	data, err := os.ReadFile(filepath.Join(s.Folder, "node_modules", filepath.FromSlash(pkg), "package.json"))
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("package.json cannot be read: %w", err)
	}
	return m, nil
}

// scripts notes which packages wanted to run something when they were installed.
func (s *Server) scripts(lock []byte) {
	var doc struct {
		Packages map[string]struct {
			HasInstallScript bool `json:"hasInstallScript"`
		} `json:"packages"`
	}
	if json.Unmarshal(lock, &doc) != nil {
		return
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(doc.Packages)) {
		if doc.Packages[name].HasInstallScript {
			list = append(list, name[strings.LastIndex(name, "node_modules/")+len("node_modules/"):])
		}
	}
	if len(list) > 0 {
		s.note("scripts that run at an install were not run: %s", strings.Join(list, ", "))
	}
}

// run runs npm with the files and the network of the user, because npm has its
// settings and its cache among them. It does not see Ken's own folders.
func (s *Server) run(ctx context.Context, argv []string) error {
	programs := executor.NewPrograms(s.cfg.Path, s.Folder)
	found, err := programs.Find(argv[0])
	if err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	work, err := os.OpenRoot(s.Folder)
	if err != nil {
		return err
	}
	defer work.Close()
	env := []string{"PATH=" + s.cfg.Path}
	for _, name := range []string{
		"HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"npm_config_registry", "npm_config_cache", "npm_config_userconfig", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CACHE", "NPM_CONFIG_USERCONFIG",
	} {
		if v, ok := s.cfg.Getenv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	outcome, err := sandbox.Run(ctx, sandbox.Spec{
		Path: found.Path, Args: argv, Work: work, Env: env, Require: s.cfg.Require,
		Open:   sandbox.Open{Files: true, Network: true, Hide: s.cfg.Hide},
		Limits: sandbox.Limits{Wall: installTime, Output: 64 << 10, AddressSpace: -1, CPU: -1, FileSize: -1, Processes: 4096},
	})
	if err != nil {
		return err
	}
	if outcome.End != sandbox.Exited || outcome.ExitCode != 0 {
		ending := string(outcome.End)
		if outcome.End == sandbox.Exited {
			ending = fmt.Sprintf("status %d", outcome.ExitCode)
		}
		return fmt.Errorf("%s ended with %s: %s", argv[0], ending, executor.Clip(strings.TrimSpace(cmp.Or(outcome.Stderr.Text(), outcome.Stdout.Text())), 1000))
	}
	return nil
}

// command returns the program of a package with its first argument, chosen as npx
// does.
func (s *Server) command(m *manifest) ([]string, error) {
	byName := map[string]string{}
	var only string
	if json.Unmarshal(m.Bin, &only) == nil {
		byName[path.Base(m.Name)] = only
	} else if m.Bin != nil && json.Unmarshal(m.Bin, &byName) != nil {
		return nil, errors.New("package.json names programs in an unreadable form")
	}
	names := slices.Sorted(maps.Keys(byName))
	file := byName[path.Base(m.Name)]
	if file == "" && len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return byName[n] != byName[names[0]] }) {
		file = byName[names[0]]
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("the package %s has no program to start", m.Name)
	case file == "":
		return nil, fmt.Errorf("the package %s has several programs, and none with its name: %s", m.Name, strings.Join(names, ", "))
	}
	file = path.Clean(file)
	if !filepath.IsLocal(file) {
		return nil, differs("the program of %s is %q, outside of it", m.Name, file)
	}
	dir := filepath.Join(s.Folder, "node_modules", filepath.FromSlash(m.Name))
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the program of %s cannot be read: %w", m.Name, err)
	}
	defer f.Close()
	full := filepath.Join(dir, filepath.FromSlash(file))
	first, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n') // what there is
	switch ext := path.Ext(file); {
	case strings.HasPrefix(string(first), "#!") && strings.Contains(string(first), "node"), ext == ".js", ext == ".mjs", ext == ".cjs":
		return []string{"node", full}, nil
	}
	return []string{full}, nil
}
