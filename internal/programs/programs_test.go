package programs

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLines holds what is known of command lines against testdata/lines.txt,
// which says what its words mean.
func TestLines(t *testing.T) {
	text, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("\n\n"))
	word := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	for row := range strings.Lines(string(text)) {
		want, line, _ := strings.Cut(strings.TrimSpace(row), " ")
		argv, got := strings.Fields(line), ""
		switch want {
		case "", "#":
			continue
		case "risky", "plain":
			got = word(Risky(argv, 1), "risky", "plain")
		case "looks", "acts":
			got = word(GitLooks(argv), "looks", "acts")
		case "destroys", "keeps":
			got = word(GitDestroys(argv), "destroys", "keeps")
		case "starts":
			want, line, _ = strings.Cut(line, ": ")
			started, ok := Started(strings.Fields(line))
			got = word(ok, strings.Join(started, " "), "?")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestOf: every program that starts others or runs code is known as such, with
// version numbers too.
func TestOf(t *testing.T) {
	for kind, names := range map[Kind]string{
		Starter:     "env sudo taskset setpriv prlimit chrt valgrind bwrap capsh run-parts tmux screen socat pkexec flock ld-linux-x86-64.so.2 busybox",
		Shell:       "sh bash zsh ksh93 fish",
		Interpreter: "sh python python3 python3.12 perl m4 awk make find-nothing",
		Project:     "make npm npx pytest cargo",
		Editor:      "vim less man",
	} {
		for name := range strings.FieldsSeq(names) {
			if got := Is(name, kind); got == (name == "find-nothing") {
				t.Errorf("%s: %b, want %b", name, Of(name), kind)
			}
		}
	}
	for _, name := range []string{"ls", "cat", "git", "find", "grep", "", "go"} {
		if got := Of(name); got != 0 {
			t.Errorf("%q: %b", name, got)
		}
	}
	if names := []string{"env", "ssh", "tmux"}; slices.ContainsFunc(names, func(n string) bool { return !HidesCommand(n) }) || HidesCommand("timeout") {
		t.Error("HidesCommand")
	}
}
