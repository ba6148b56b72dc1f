//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit"
	"ken/internal/testkit/scripttest"
)

// stories are the scripts that tell what Ken is, in the order in which somebody
// meets it. They need no other program, so make test runs them; make ci has all.
var stories = []string{
	"first_hour", "demo", "spine", "sources", "discover", "meaning", "skills", "overrides", "precedence",
	"permissions", "quarantine", "files", "secret", "chat", "chat_cards", "chat_consent", "mcp_standalone",
	"mcp_daemon", "mcp_consent", "connect", "serve", "token", "jobs", "audit", "backup", "doctor",
}

// TestMain makes this program the MCP server of scripts too: under the name
// sample.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sample" {
		if err := scripttest.Sample(); err != nil {
			fmt.Fprintln(os.Stderr, "sample:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// A shell makes background programs ignore interrupts, and every program
	// that tests start would inherit that. Listening for the signal keeps it
	// from being inherited as ignored.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(m.Run())
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
	binary := program(t)
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
			scripttest.Begin(env)
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
				return scripttest.CanMount(), nil
			case "npm":
				return os.Getenv(testkit.NightlyEnv) != "" && os.Getenv("KEN_NPM") != "", nil
			case "postgres":
				return os.Getenv("KEN_TEST_POSTGRES") != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: scripttest.Commands(),
	})
}

// program is where the program is: the one that KEN_TEST_BINARY names, or one that is
// built for this test.
func program(t testing.TB) string {
	t.Helper()
	if binary := os.Getenv("KEN_TEST_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(t.TempDir(), "ken")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// openDir is a folder that other users may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}
