package mcptest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	End()
	os.Exit(code)
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
