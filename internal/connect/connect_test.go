package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/testkit"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// memory is a Keep for tests that do not look at the sealing.
type memory map[string][]byte

func (m memory) Save(_ context.Context, key string, data []byte) error {
	m[key] = bytes.Clone(data)
	return nil
}

func (m memory) Load(_ context.Context, key string) ([]byte, error) {
	data, ok := m[key]
	if !ok {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "load"}
	}
	return data, nil
}

func (m memory) Delete(_ context.Context, key string) error {
	delete(m, key)
	return nil
}

// A story is one file of testdata.
type story struct {
	Client  string            `json:"client"`
	Project string            `json:"project"`
	File    string            `json:"file"`
	Env     map[string]string `json:"env"`
	HTTP    bool              `json:"http"`
	CRLF    bool              `json:"crlf"`
	BOM     bool              `json:"bom"`
	Compact bool              `json:"compact"` // without line breaks
}

// Files of a story: "options", the client's files before under before/, after
// under after/, and what came of it: mcp.json, report, diff.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 8 {
		t.Fatalf("Glob = %v, %v, want a story for each client", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { runStory(t, path) })
	}
}

func runStory(t *testing.T, path string) {
	ar := testkit.Must(txtar.ParseFile(path))(t)
	var st story
	home := t.TempDir()
	in := func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("$HOME"), []byte(home)) }
	out := func(s string) string { return strings.ReplaceAll(s, home, "$HOME") }
	for _, f := range ar.Files {
		if f.Name == "options" {
			testkit.OK(t, json.Unmarshal(in(f.Data), &st))
		}
	}
	for _, f := range ar.Files {
		if name, ok := strings.CutPrefix(f.Name, "before/"); ok {
			if strings.HasSuffix(name, "/") {
				testkit.OK(t, os.MkdirAll(filepath.Join(home, name), 0o755))
			} else {
				testkit.OK(t, writeAll(filepath.Join(home, name), st.bytes(in(f.Data))))
			}
		}
	}
	before := snapshot(t, home)

	o := Options{
		Where: Where{Client: st.Client, Home: home, Getenv: func(k string) string { return st.Env[k] }, Project: st.Project, File: st.File},
		Entry: Entry{Command: "/usr/local/bin/ken"},
	}
	if st.HTTP {
		o.Entry = Entry{URL: "http://127.0.0.1:7777/mcp", Token: "kent_0123456789abcdef"}
	}
	p, err := Prepare(o)
	if err != nil {
		t.Fatalf("Prepare() = %v", err)
	}
	if diff := cmp.Diff(before, snapshot(t, home)); diff != "" {
		t.Errorf("Prepare() changed files (-before +after):\n%s", diff)
	}
	servers, renames, err := Merge(nil, p.Servers, p.Client)
	if err != nil {
		t.Fatalf("Merge() = %v", err)
	}
	keep := memory{}
	if err := Apply(t.Context(), p, keep); err != nil {
		t.Fatalf("Apply() = %v", err)
	}
	after := snapshot(t, home)
	compare(t, path, ar, after, map[string]string{
		"mcp.json": out(string(servers)), "report": out(report(p, renames)), "diff": out(p.Diff()),
	}, out)
	for _, s := range p.Secrets {
		if v := s.Value.Reveal(); v != "" && !kenRef().MatchString(v) && (strings.Contains(p.Diff(), v) || bytes.Contains(servers, []byte(v))) {
			t.Errorf("the value of %s is in the diff or in mcp.json", s.Name)
		}
	}

	// Once more changes nothing, and undo gives every byte back.
	again, err := Prepare(o)
	if err != nil || len(again.Files) != 0 || len(again.Servers) != 0 {
		t.Errorf("Prepare() of what is connected = %d files, %d servers, %v, want none", len(again.Files), len(again.Servers), err)
	}
	if _, err := Undo(t.Context(), st.Client, keep, false); err != nil && len(p.Files) > 0 {
		t.Fatalf("Undo() = %v", err)
	}
	if diff := cmp.Diff(before, snapshot(t, home)); diff != "" {
		t.Errorf("Undo() did not restore the files (-before +after):\n%s", diff)
	}
	if len(keep) != 0 {
		t.Errorf("Undo() left %v", slices.Collect(maps.Keys(keep)))
	}
}

// bytes applies what txtar cannot hold.
func (st story) bytes(data []byte) []byte {
	if st.CRLF {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	if st.BOM {
		data = append(slices.Clone(byteOrderMark), data...)
	}
	if st.Compact {
		var b bytes.Buffer
		if json.Compact(&b, data) == nil {
			data = b.Bytes()
		}
	}
	return data
}

func report(p *Plan, renames map[string]string) string {
	var b strings.Builder
	for _, s := range p.Secrets {
		fmt.Fprintf(&b, "secret %s from %s", s.Name, s.Where)
		if s.Value.Empty() {
			fmt.Fprintf(&b, " to be set: %s", s.About)
		} else {
			fmt.Fprintf(&b, " = %s", s.Value.Reveal())
		}
		b.WriteByte('\n')
	}
	for _, k := range p.Kept {
		fmt.Fprintln(&b, "kept", k)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(&b, "note", n)
	}
	for _, from := range slices.Sorted(maps.Keys(renames)) {
		fmt.Fprintf(&b, "renamed %s to %s\n", from, renames[from])
	}
	return b.String()
}

func compare(t *testing.T, path string, ar *txtar.Archive, after map[string][]byte, other map[string]string, out func(string) string) {
	got := map[string]string{}
	for name, data := range after {
		got["after/"+name] = visible(out(string(data)))
	}
	for name, text := range other {
		got[name] = visible(text)
	}
	if *update {
		ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool {
			return f.Name != "options" && !strings.HasPrefix(f.Name, "before/")
		})
		for _, name := range slices.Sorted(maps.Keys(got)) {
			ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
		testkit.OK(t, os.WriteFile(path, txtar.Format(ar), 0o644))
		return
	}
	want := map[string]string{}
	for _, f := range ar.Files {
		if f.Name != "options" && !strings.HasPrefix(f.Name, "before/") {
			want[f.Name] = string(f.Data)
		}
	}
	for name := range want { // txtar ends every file with a line break
		if _, ok := got[name]; ok && got[name] != "" && !strings.HasSuffix(got[name], "\n") {
			got[name] += "\n"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after connecting (-want +got):\n%s", diff)
	}
}

// visible shows line ends and marks that txtar would lose.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "␍\n")
	return strings.ReplaceAll(text, string(byteOrderMark), "[BOM]")
}

func writeAll(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o640)
}

// snapshot reads all files below a folder.
func snapshot(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
