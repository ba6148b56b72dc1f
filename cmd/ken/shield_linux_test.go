package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ken/internal/testkit"
)

// TestShielded: a process of the same user cannot read the memory or the
// environment of ken serve, and for that user calls run with the full profile.
func TestShielded(t *testing.T) {
	testkit.CI(t, "starts a server as another user")
	const nobody = 65534
	if os.Getuid() != 0 {
		t.Skip("cannot here: only root can start a program as another user")
	}
	dir := openDir(t)
	data, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	binary, work := filepath.Join(dir, "ken"), filepath.Join(dir, "work")
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, work} {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	as := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir = work
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "KEN_HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + dir, "OPENAI_API_KEY=the-key-that-nobody-sees"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	served := as(binary, "serve", "--addr", "127.0.0.1:0")
	said, err := served.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	served.Stderr = &log
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		served.Process.Signal(syscall.SIGTERM)
		served.Wait()
	}()
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "http://127.0.0.1:") {
		t.Fatalf("ken serve said %q, %v\n%s", line, err, log.String())
	}
	for _, name := range []string{"environ", "mem", "maps", "fd/0", "exe"} {
		out, err := as("cat", fmt.Sprintf("/proc/%d/%s", served.Process.Pid, name)).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("Permission denied")) {
			t.Errorf("cat /proc/PID/%s = %q, %v, want it denied", name, out, err)
		}
	}
	if out, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", served.Process.Pid)); err != nil || !bytes.Contains(bytes.Join(bytes.Fields(out), []byte{' '}), []byte("Max core file size 0 ")) {
		t.Errorf("the limits are %s, %v, want no core file", out, err)
	}
	out, err := as(binary, "run", "--json", "tool:shell", `{"cmd":"ls"}`).Output()
	if err != nil {
		t.Fatalf("ken run = %v\n%s", err, out)
	}
	var report struct {
		Result struct{ Meta map[string]string }
	}
	var held struct{ Profile string }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(report.Result.Meta["isolation"]), &held); err != nil || held.Profile != "full" {
		t.Errorf("the call ran with the profile %q, %v, want full", held.Profile, err)
	}
}
