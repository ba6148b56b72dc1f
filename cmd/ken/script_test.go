//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit"
)

// stories are the scripts that tell what Ken is, in the order in which somebody
// meets it. They need no other program, so make test runs them; make ci has all.
var stories = []string{
	"first_hour", "demo", "spine", "sources", "discover", "meaning", "skills", "overrides", "precedence",
	"permissions", "quarantine", "files", "secret", "chat", "chat_cards", "chat_consent", "mcp_standalone",
	"mcp_daemon", "mcp_consent", "connect", "serve", "token", "jobs", "audit", "backup", "doctor",
}

// TestScript runs the product's specification, testdata/script, against the
// real program: the one that KEN_TEST_BINARY names, or one built here.
func TestScript(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "script")
	scripts, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		for _, file := range scripts {
			if name := strings.TrimSuffix(filepath.Base(file), ".txtar"); !slices.Contains(stories, name) {
				t.Run(name, func(t *testing.T) { testkit.CI(t, "make test has the scripts that tell the story") })
			}
		}
		scripts = nil
		for _, name := range stories {
			scripts = append(scripts, filepath.Join(dir, name+".txtar"))
		}
	}
	binary := os.Getenv("KEN_TEST_BINARY")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "ken")
		build := exec.Command("go", "build", "-o", binary, ".")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "extensions"))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := os.Executable() // see TestMain
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			bin := filepath.Join(env.WorkDir, ".bin")
			if err := os.MkdirAll(bin, 0o755); err != nil {
				return err
			}
			absolute, err := filepath.Abs(binary)
			if err != nil {
				return err
			}
			if err := os.Symlink(absolute, filepath.Join(bin, "ken")); err != nil {
				return err
			}
			if err := os.Symlink(server, filepath.Join(bin, "sample")); err != nil {
				return err
			}
			env.Values[clientsKey] = clients{}
			env.Values[testKey] = env.T()
			// As root, programs are run as somebody else, who must get there.
			if err := os.Chmod(filepath.Dir(env.WorkDir), 0o755); err != nil {
				return err
			}
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a program that looks for races sleeps a second at its end
			env.Setenv("KEN_BENCH", os.Getenv("KEN_BENCH"))
			env.Setenv("KEN_TEST_POSTGRES", os.Getenv("KEN_TEST_POSTGRES"))
			env.Setenv("NAP", fmt.Sprintf("300.%07d", os.Getpid())) // by which a sleep of this run is known
			env.Setenv("EXAMPLES", examples)
			env.Setenv("DOCS", docs)
			env.Setenv("HOMES", filepath.Join(docs, "..", "testdata", "homes"))
			return os.MkdirAll(env.Getenv("HOME"), 0o755)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "bench":
				return os.Getenv("KEN_BENCH") != "", nil
			case "root":
				return os.Geteuid() == 0, nil
			case "disk":
				return canMount(), nil
			case "npm":
				return os.Getenv(testkit.NightlyEnv) != "" && os.Getenv("KEN_NPM") != "", nil
			case "postgres":
				return os.Getenv("KEN_TEST_POSTGRES") != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ken":         runKen,
			"model":       startModel,
			"asked":       modelAsked,
			"order":       modelOrder,
			"events":      happened,
			"json":        checkJSON,
			"serve":       serve,
			"get":         get,
			"post":        post,
			"put":         put,
			"remove":      remove,
			"follow":      follow,
			"over":        over,
			"hangup":      hangup,
			"rising":      rising,
			"joined":      joined,
			"hold":        hold,
			"issuer":      startIssuer,
			"apiserver":   startAPI,
			"graphql":     startGraphQL,
			"npmregistry": startNPM,
			"person":      person,
			"interrupt":   interrupt,
			"stopped":     stopped,
			"header":      header,
			"mcp":         mcpClient,
			"call":        call,
			"send":        send,
			"answers":     answers,
			"says":        says,
			"told":        told,
			"leave":       leave,
			"daemon":      daemonIs,
			"signal":      signal,
			"fifo":        fifo,
			"sparse":      sparse,
			"disk":        disk,
			"fill":        fill,
			"lines":       lines,
			"expand":      expand,
			"exits":       exits,
			"many":        many,
			"take":        take,
			"await":       await,
			"alive":       alive,
			"gone":        gone,
			"tty":         tty,
			"models":      startModels,
		},
	})
}

const testKey = "test"

// failAtEnd fails a script after its last line has run. ts.Fatalf cannot be
// used there: testscript no longer recovers its panic, so it would end all
// scripts.
func failAtEnd(ts *testscript.TestScript, format string, args ...any) {
	t := ts.Value(testKey).(testscript.T)
	t.Log(fmt.Sprintf(format, args...))
	t.FailNow()
}

// runKen is "exec ken".
func runKen(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("ken", args...)
	if err != nil && !neg {
		ts.Fatalf("ken %s: %v", strings.Join(args, " "), err)
	}
	if err == nil && neg {
		ts.Fatalf("ken %s: it succeeded, and should not have", strings.Join(args, " "))
	}
}

// checkJSON FILE PATH [VALUE]: the value at a path equals VALUE, matches the
// expression in ~VALUE, or is there at all. Steps of the path are apart by "|":
// a key, the index of a list's element, last, key=value for the first element
// that has it, or len for the length.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] json FILE PATH [VALUE]")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s is not one JSON document: %v", args[0], err)
	}
	value, ok := at(doc, strings.Split(args[1], "|"))
	got := fmt.Sprint(value)
	if f, isFloat := value.(float64); isFloat {
		got = strconv.FormatFloat(f, 'f', -1, 64)
	}
	matches := ok
	if len(args) == 3 {
		want, isPattern := strings.CutPrefix(args[2], "~")
		if isPattern {
			pattern, err := regexp.Compile(want)
			ts.Check(err)
			matches = ok && pattern.MatchString(got)
		} else {
			matches = ok && got == args[2]
		}
	}
	if matches == neg {
		ts.Fatalf("json %s is %q (there: %v)", strings.Join(args, " "), got, ok)
	}
}

func at(v any, path []string) (any, bool) {
	for _, step := range path {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			next, ok := element(node, step)
			if !ok {
				return nil, false
			}
			v = next
		default:
			return nil, false
		}
	}
	return v, true
}

func element(list []any, step string) (any, bool) {
	if step == "len" {
		return float64(len(list)), true
	}
	if key, want, ok := strings.Cut(step, "="); ok {
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && fmt.Sprint(m[key]) == want {
				return item, true
			}
		}
		return nil, false
	}
	if step == "last" {
		step = strconv.Itoa(len(list) - 1)
	}
	i, err := strconv.Atoi(step)
	if err != nil || i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// fifo NAME makes a named pipe.
func fifo(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(syscall.Mkfifo(ts.MkAbs(name), 0o644))
	}
}

// sparse NAME SIZE makes a file that is large and holds nothing.
func sparse(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), nil, 0o644))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// lines FILE COUNT: the file has that many lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	got := strings.Count(ts.ReadFile(args[0]), "\n")
	if (strconv.Itoa(got) == args[1]) == neg {
		ts.Fatalf("%s has %d lines", args[0], got)
	}
}

// expand FILE…: puts the script's folder into files, for $WORK, and the nap of
// this run, for $NAP.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: expand FILE…")
	}
	for _, name := range args {
		text := strings.NewReplacer("$WORK", ts.Getenv("WORK"), "$NAP", ts.Getenv("NAP")).Replace(ts.ReadFile(name))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}
