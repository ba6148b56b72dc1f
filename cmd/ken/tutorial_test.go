//go:build unix

package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestTutorials runs the commands of docs/tutorials in their order, each page in
// a fresh home, and compares what they print with the page.
func TestTutorials(t *testing.T) {
	testkit.Programs(t, "jq")
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "tutorials", "*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("the tutorials are %q, %v", pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		steps := tutorialSteps(string(text))
		if len(steps) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			followTutorial(t, steps)
		})
	}
}

// A step is a command of a tutorial and what the tutorial says that it prints.
type step struct {
	command string
	prints  []string
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// tutorialSteps returns the commands of the console blocks: what follows "$ ",
// with its here-document, if it has one, and then the lines that it prints.
func tutorialSteps(text string) []step {
	var steps []step
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		end := "" // of a here-document
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSuffix(line, "\n")
			command, ok := strings.CutPrefix(line, "$ ")
			switch {
			case end != "":
				steps[len(steps)-1].command += "\n" + line
				if line == end {
					end = ""
				}
			case ok:
				steps = append(steps, step{command: command})
				if _, word, ok := strings.Cut(command, "<<'"); ok {
					end = strings.TrimSuffix(word, "'")
				}
			case len(steps) > 0:
				steps[len(steps)-1].prints = append(steps[len(steps)-1].prints, line)
			}
		}
	}
	return steps
}

func TestTutorialSteps(t *testing.T) {
	const text = "Words\n\n```console\n$ cat > a <<'END'\n$ b\nEND\n$ cat a\n$ b\n…c\n```\n\n```\n$ other\n```\n"
	got := fmt.Sprintf("%q", tutorialSteps(text))
	if want := `[{"cat > a <<'END'\n$ b\nEND" []} {"cat a" []} {"b" ["…c"]}]`; got != want {
		t.Errorf("steps = %s, want %s", got, want)
	}
}

// followTutorial does what a reader of a tutorial does, in one shell.
func followTutorial(t *testing.T, steps []step) {
	n := newcomer{t: t, dir: t.TempDir(), home: t.TempDir()}
	n.settle()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"id":7,"status":%q}]`, r.URL.Query().Get("status"))
	}))
	defer shop.Close()
	// The ports of the page are taken on many machines; ID is what a reader copies.
	here := strings.NewReplacer(
		"127.0.0.1:7777", freeAddress(t), "127.0.0.1:8080", strings.TrimPrefix(shop.URL, "http://"),
		"ken approve grant ID", "ken approve grant $(ken approve list --json | jq -r '.tickets[0].id')",
	)
	outputs := t.TempDir()
	var script strings.Builder
	script.WriteString("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	for i, s := range steps {
		out := filepath.Join(outputs, fmt.Sprint(i))
		fmt.Fprintf(&script, "{ %s\n} >%s 2>&1\n", here.Replace(s.command), out)
		if strings.HasSuffix(s.command, "&") { // a reader waits until it has printed its link
			script.WriteString("until grep -q http serve.log; do kill -0 $! || break; sleep 0.05; done\n")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := n.command(ctx, "bash", "-c", script.String())
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(n.dir, "bin")+":"+os.Getenv("PATH"))
	log, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, log)
	for i, s := range steps {
		out, err := os.ReadFile(filepath.Join(outputs, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		printed(t, s, string(out), here)
	}
}

// printed checks that a command printed the lines of a step, in their order. In a
// line, … stands for anything.
func printed(t *testing.T, s step, out string, here *strings.Replacer) {
	t.Helper()
	lines := strings.Split(out, "\n")
	for _, want := range s.prints {
		parts := strings.Split(here.Replace(want), "…")
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		match := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		at := slices.IndexFunc(lines, match.MatchString)
		if at < 0 {
			t.Errorf("$ %s\nprints no line %q:\n%s", s.command, want, out)
			return
		}
		lines = lines[at+1:]
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
