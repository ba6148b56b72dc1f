//go:build unix

package scripttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit"
)

// Commands of scripts about running calls.

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// exits STATUS ARGS…: "ken ARGS…" ends with exactly that status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS ARGS…")
	}
	if got := statusOf(ts, ts.Exec("ken", args[1:]...)); got != args[0] {
		ts.Fatalf("ken %s: status %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// statusOf returns the status of a program that has ended, as a script writes it.
func statusOf(ts *testscript.TestScript, err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &exit):
		return strconv.Itoa(exit.ExitCode()) // -1: by a signal
	}
	ts.Fatalf("start: %v", err)
	return ""
}

// program is ken as a script has it, with the script's folder and environment.
func program(ts *testscript.TestScript, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(ts.Getenv("WORK"), ".bin", "ken"), args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "KEN_HOME", "KEN_SESSION", "KEN_CAPABILITY_DIRS", "SERPER_API_KEY", "GORACE"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}

// many COUNT ARGS…: so many "ken ARGS…" at once, with %d in ARGS the number of
// each; all must end well.
func many(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: many COUNT ARGS…")
	}
	count, err := strconv.Atoi(args[0])
	ts.Check(err)
	failed := make([]error, count)
	var group sync.WaitGroup
	for i := range count {
		given := make([]string, 0, len(args)-1)
		for _, arg := range args[1:] {
			given = append(given, strings.ReplaceAll(arg, "%d", strconv.Itoa(i)))
		}
		cmd := program(ts, given...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		group.Go(func() {
			if err := cmd.Run(); err != nil {
				failed[i] = fmt.Errorf("ken %s: %w\n%s", strings.Join(given, " "), err, stderr.String())
			}
		})
	}
	group.Wait()
	ts.Check(errors.Join(failed...))
}

// take NAME FILE PATH: puts the value at a path of a JSON document into the
// environment.
func take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: take NAME FILE PATH")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[1])), &doc); err != nil {
		ts.Fatalf("%s is not one JSON document: %v", args[1], err)
	}
	value, ok := at(doc, strings.Split(args[2], "|"))
	if !ok {
		ts.Fatalf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}

// await FILE PATTERN: waits until the file has a line like that.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var last []byte
	if !testkit.Until(func() bool {
		last, _ = os.ReadFile(ts.MkAbs(args[0]))
		return pattern.Match(last)
	}) {
		ts.Fatalf("%s never had %q:\n%s", args[0], args[1], last)
	}
}

// alive MARK waits until a process has MARK in its command line; ! alive MARK:
// none has.
func alive(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] alive MARK")
	}
	if !neg {
		if !testkit.Until(func() bool { return len(processes(args[0])) > 0 }) {
			ts.Fatalf("no process has %q in its command line", args[0])
		}
		return
	}
	if found := processes(args[0]); len(found) > 0 {
		ts.Fatalf("still there: %q", found)
	}
}

// gone MARK waits until no process has MARK in its command line: what follows
// from a death, which the dead cannot wait for.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone MARK")
	}
	if !testkit.Until(func() bool { return len(processes(args[0])) == 0 }) {
		ts.Fatalf("still there: %q", processes(args[0]))
	}
}

// processes returns the command lines of all processes that hold a text.
func processes(mark string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []string
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may have ended meanwhile
		if text := strings.ReplaceAll(string(line), "\x00", " "); strings.Contains(text, mark) {
			out = append(out, text)
		}
	}
	return out
}
