package mcptest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programs builds each program of these tests once.
var programs = struct {
	sync.Mutex
	dir  string
	path map[string]string
}{path: map[string]string{}}

func TestMain(m *testing.M) {
	code := m.Run()
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

func build(tb testing.TB, pkg string) string {
	tb.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := programs.path[pkg]; path != "" {
		return path
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "mcptest")
		if err != nil {
			tb.Fatal(err)
		}
		programs.dir = dir
	}
	path := filepath.Join(programs.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as released, and already in the build cache
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	programs.path[pkg] = path
	return path
}

func fixture(tb testing.TB) string { return build(tb, "ken/internal/testkit/mcptest/fixture") }

// ken is the program that KEN_TEST_BINARY names, or one built here.
func ken(tb testing.TB) string {
	if path := os.Getenv("KEN_TEST_BINARY"); path != "" {
		return path
	}
	return build(tb, "ken/cmd/ken")
}

// startHTTP starts a program that prints its URL first, and ends it with the
// test.
func startHTTP(tb testing.TB, program string, args ...string) (url string) {
	tb.Helper()
	return startCommand(tb, exec.Command(program, args...))
}

// startCommand is startHTTP for a command whose process the caller needs.
func startCommand(tb testing.TB, cmd *exec.Cmd) (url string) {
	tb.Helper()
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatalf("%s printed no URL: %v", cmd.Path, err)
	}
	return strings.TrimSpace(line)
}
