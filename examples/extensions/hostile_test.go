package extensions_test

import (
	"archive/tar"
	"archive/zip"
	"os"
	"strings"
	"testing"
)

// The tests of options: no value becomes an option that its action does not
// offer. The ones tried would each write a file or run a program.

// TestHostileRepository: what a repository's settings name is not run.
func TestHostileRepository(t *testing.T) {
	b := newBench(t, "tools.git")
	dir := b.work(t, "project")
	b.repository(t, dir)
	for key, value := range map[string]string{
		"core.fsmonitor": "touch pwned-monitor", "core.pager": "touch pwned-pager", "pager.log": "touch pwned-pager", "core.hooksPath": "hooks",
		"diff.external": "touch pwned-external", "diff.bad.textconv": "touch pwned-textconv", "diff.bad.command": "touch pwned-command",
		"log.showSignature": "true", "gpg.program": "touch pwned-gpg", "core.sshCommand": "touch pwned-ssh", "core.editor": "touch pwned-editor",
		"alias.log": "!touch pwned-alias", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
		"remote.origin.url": "ext::touch pwned-ext", "remote.origin.uploadpack": "touch pwned-uploadpack", "protocol.ext.allow": "always", "core.repositoryFormatVersion": "1",
	} {
		tool(t, dir, "git", "config", key, value)
	}
	b.write(t, map[string]string{"project/.gitattributes": "* diff=bad\n", "project/hooks/post-index-change": "#!/bin/sh\ntouch pwned-hook\n"})
	if err := os.Chmod(b.work(t, "project/hooks/post-index-change"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.try(t, []try{
		{line: "/git status --repo project", want: []string{" M README.md"}},
		{line: "/git log --repo project", want: []string{"Begin"}},
		{line: "/git diff --repo project", want: []string{"+third"}},
		{line: "/git diff HEAD~1 --repo project", want: []string{"+third"}},
		{line: "/git show --repo project", want: []string{"+second"}},
		{line: "/git blame README.md --repo project", want: []string{"first line"}},
		{line: "/git search TODO --repo project", want: []string{"README.md"}},
		{line: "/git branches --repo project", want: []string{"main"}},
		{line: "/git show 0123456789012345678901234567890123456789 --repo project", failed: true}, // a promisor would have it
	})
	b.pwned(t)

	// The same file is made when git is not told otherwise: the traps work.
	tool(t, dir, "sh", "-c", "git status >/dev/null; git --no-pager diff >/dev/null; git --no-pager diff --no-ext-diff >/dev/null; git show 0123456789012345678901234567890123456789; true")
	for _, trap := range []string{"pwned-monitor", "pwned-command", "pwned-textconv", "pwned-ext"} {
		if _, err := os.Stat(b.work(t, "project/"+trap)); err != nil {
			t.Errorf("plain git did not run into %s: %v", trap, err)
		}
	}
}

// TestHostileDatabase: neither a database's triggers and views nor a settings
// file beside it run anything.
func TestHostileDatabase(t *testing.T) {
	b := newBench(t, "tools.sqlite")
	db := b.work(t, "x.db")
	tool(t, b.workspace, "sqlite3", db, `create table t(a); create table log(a);
		create trigger tr after insert on t begin insert into log values (edit(new.a, 'touch pwned-trigger')); end;
		create view v as select edit('x', 'touch pwned-view') as e;
		create view w as select writefile('pwned-file', 'x') as e`)
	rc := map[string]string{".sqliterc": ".shell touch pwned-rc\n"}
	b.home(t, "tools.sqlite", rc)
	b.write(t, rc)
	b.write(t, map[string]string{"x.csv": "1\n"})
	b.try(t, []try{
		{line: "/sqlite tables x.db", want: []string{"tr"}},
		{line: "/sqlite query x.db 'select * from v'", failed: true},
		{line: "/sqlite export x.db w", failed: true},
		{line: "/sqlite change x.db 'insert into t values (1)'", failed: true},
		{line: "/sqlite import x.db x.csv t", failed: true, want: []string{"unsafe use of edit()"}},
	})
	b.pwned(t)
}

// TestHostileArchive: nothing is written outside the folder that was named,
// whatever the members are called.
func TestHostileArchive(t *testing.T) {
	b := newBench(t, "tools.archive")
	b.write(t, map[string]string{"victim.txt": "whole\n"})
	tape, err := os.Create(b.work(t, "bad.tar"))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(tape)
	for _, h := range []*tar.Header{
		{Name: "../pwned-up", Mode: 0o644, Size: 1}, {Name: "/tmp/pwned-absolute", Mode: 0o644, Size: 1},
		{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "out/pwned-link", Mode: 0o644, Size: 1},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../victim.txt"}, {Name: "good.txt", Mode: 0o4755, Size: 1},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tape.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(b.work(t, "bad.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(file)
	for _, name := range []string{"../pwned-zip", "../victim.txt", "good.txt"} {
		if m, err := z.Create(name); err != nil {
			t.Fatal(err)
		} else if _, err := m.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	b.run(t, "/archive extract bad.tar box/tape")    // fails, or not, by what tar makes of it
	b.run(t, "/archive extract-zip bad.zip box/zip") // warns
	for _, name := range []string{"box/tape/good.txt", "box/zip/good.txt"} {
		if info, err := os.Stat(b.work(t, name)); err != nil || info.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s = %v, %v, want a plain file", name, info, err)
		}
	}
	entries, err := os.ReadDir(b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "bad.tar bad.zip box victim.txt" {
		t.Errorf("the work directory holds %s, want nothing beside box that was not there", got)
	}
	if text, err := os.ReadFile(b.work(t, "victim.txt")); err != nil || string(text) != "whole\n" {
		t.Errorf("victim.txt = %q, %v", text, err)
	}
}
