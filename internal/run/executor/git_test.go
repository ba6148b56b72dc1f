package executor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGitPrograms: it finds the programs that a repository's configuration
// makes git run.
func TestGitPrograms(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "",
		"[core]\n\tbare = false\n":               "",
		"[remote \"origin\"]\n\turl = x\n":       "",
		"[alias]\n\tst = status\n":               "",
		"[filter \"x\"]\n\tclean = evil\n":       "filter.clean",
		"[filter \"x\"] clean = evil":            "filter.clean",
		"[FILTER \"x\"]\n Process=evil":          "filter.process",
		"[diff \"x\"]\n\ttextconv = evil\n":      "diff.textconv",
		"[diff]\n\texternal = evil\n":            "diff.external",
		"[include]\n\tpath = other\n":            "include.path",
		"[includeIf \"gitdir:/\"]\n\tpath = o\n": "includeif.path",
		"[alias]\n\tst = !evil\n":                "alias.st",
		"[merge \"x\"]\n\tdriver = evil\n":       "merge.driver",
		"[gpg]\n\tprogram = evil\n":              "gpg.program",
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git/config"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := GitPrograms(dir, filepath.Join(dir, "a/b"))
		if want != "" {
			want += " in .git/config"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: evil"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := GitPrograms(dir, dir); !strings.Contains(got, "no folder") {
		t.Errorf("a file .git: %q", got)
	}
}

// TestGitEnvironment: with the environment of every program, git status runs
// neither a monitor nor a hook that the repository names; without it, it does.
func TestGitEnvironment(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("cannot here: git is not installed")
	}
	dir := t.TempDir()
	run := func(env []string, args ...string) {
		t.Helper()
		c := exec.Command(git, args...)
		c.Dir, c.Env = dir, append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}, env...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	ran := filepath.Join(dir, "ran")
	run(nil, "init", "-q")
	if err := os.WriteFile(filepath.Join(dir, "evil"), []byte("#!/bin/sh\necho ran >>"+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(nil, "config", "core.fsmonitor", filepath.Join(dir, "evil"))
	env, _ := Environment(os.Getenv("PATH"), nil, nil)
	run(env, "status")
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("git status ran the monitor: %s", data)
	}
	run(nil, "status")
	if _, err := os.ReadFile(ran); err != nil {
		t.Errorf("control: without the environment git status ran nothing: %v", err)
	}
}
