//go:build unix

package scripttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// startNPM starts a registry of npm packages: those in the folders of DIR, and
// those that .ci/npm.sh installed. npm uses it. It is an MCP registry too: the
// files below DIR/servers are its entries, by name. $NPM is its address.
//
//	npmregistry DIR
func startNPM(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: npmregistry DIR")
	}
	dir := ts.MkAbs(args[0])
	r := &npmRegistry{dir: dir, packages: map[string][]string{}, packed: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	ts.Check(err)
	for _, e := range entries {
		if e.Name() != "servers" {
			r.add(filepath.Join(dir, e.Name()))
		}
	}
	if installed := os.Getenv("KEN_NPM"); installed != "" {
		var lock struct {
			Packages map[string]json.RawMessage `json:"packages"`
		}
		data, err := os.ReadFile(filepath.Join(installed, "package-lock.json"))
		ts.Check(err)
		ts.Check(json.Unmarshal(data, &lock))
		for path := range lock.Packages {
			if path != "" {
				r.add(filepath.Join(installed, filepath.FromSlash(path)))
			}
		}
	}
	server := httptest.NewServer(r)
	ts.Defer(server.Close)
	ts.Setenv("NPM", server.URL)
	home := ts.Getenv("HOME")
	ts.Check(os.MkdirAll(home, 0o755))
	ts.Check(os.WriteFile(filepath.Join(home, ".npmrc"), []byte("registry="+server.URL+"\nupdate-notifier=false\n"), 0o600))
}

type npmRegistry struct {
	dir      string
	packages map[string][]string // folders by the name of their package

	mu     sync.Mutex
	packed map[string][]byte // by folder
}

func manifestOf(dir string) map[string]any {
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	m := map[string]any{}
	if err != nil || json.Unmarshal(data, &m) != nil {
		return nil // a package for another system, which was not installed
	}
	return m
}

func (r *npmRegistry) add(dir string) {
	if name, _ := manifestOf(dir)["name"].(string); name != "" {
		r.packages[name] = append(r.packages[name], dir)
	}
}

func (r *npmRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if name, ok := strings.CutPrefix(q.URL.EscapedPath(), "/v0.1/servers/"); ok {
		name, _, _ = strings.Cut(name, "/versions/")
		name, _ = url.PathUnescape(name)
		http.ServeFile(w, q, filepath.Join(r.dir, "servers", strings.ReplaceAll(name, "/", "_")+".json"))
		return
	}
	path := strings.TrimPrefix(q.URL.Path, "/")
	if dir, ok := strings.CutPrefix(path, "-/"); ok {
		_, _ = w.Write(r.pack("/" + strings.TrimSuffix(dir, ".tgz"))) // the client is gone
		return
	}
	dirs := r.packages[path]
	if len(dirs) == 0 {
		http.NotFound(w, q)
		return
	}
	versions, last := map[string]any{}, ""
	for _, dir := range dirs {
		m := manifestOf(dir)
		version, _ := m["version"].(string)
		sum := sha512.Sum512(r.pack(dir))
		m["dist"] = map[string]any{"tarball": "http://" + q.Host + "/-" + dir + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		if scripts, ok := m["scripts"].(map[string]any); ok && scripts["install"] != nil {
			m["hasInstallScript"] = true
		}
		versions[version], last = m, version
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": path, "dist-tags": map[string]any{"latest": last}, "versions": versions})
}

// pack returns a package as npm publishes it, without what lies in its
// node_modules.
func (r *npmRegistry) pack(dir string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if data, ok := r.packed[dir]; ok {
		return data
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if err == nil && e.Name() == "node_modules" && p != dir {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		_ = t.WriteHeader(&tar.Header{Name: "package/" + filepath.ToSlash(rel), Mode: 0o755, Size: int64(len(data))})
		_, err = t.Write(data)
		return err
	})
	_ = t.Close() // into memory
	_ = z.Close()
	r.packed[dir] = out.Bytes()
	return out.Bytes()
}
