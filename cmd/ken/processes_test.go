//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestProcesses has a server, six loops of calls and one call that is killed
// with SIGKILL, all on one state directory: every call has its records, every
// chain holds, that of the dead one says so, and nobody waits in vain for a lock. Where
// KEN_TEST_POSTGRES is set they have their store there.
func TestProcesses(t *testing.T) {
	testkit.CI(t, "starts 30 processes")
	const loops, calls = 6, 4
	k := newKen(t)
	serving := k.serve(t)
	k.call(t, "first", "tool:read_file", `{"path":"note.txt"}`) // makes what others find
	k.call(t, "lone", "tool:shell", `{"cmd":"echo hi"}`)
	victim := k.command("run", "--session", "victim", "tool:shell", `{"cmd":"sleep 300"}`)
	victim.Env = append(victim.Env, "SHELL_TOOL_ALLOWED_PREFIXES=sleep")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	effects := make([][]string, loops)
	half := make(chan struct{}, loops)
	var done sync.WaitGroup
	for i := range loops {
		done.Go(func() {
			for n := range calls {
				target, args := "tool:shell", fmt.Sprintf(`{"cmd":"echo hi %d"}`, n)
				if n%2 == 1 {
					target, args = "tool:read_file", `{"path":"note.txt"}`
				}
				effects[i] = append(effects[i], k.call(t, fmt.Sprint("loop", i), target, args))
				if n == calls/2 {
					half <- struct{}{}
				}
			}
		})
	}
	<-half // in the middle of it all
	chain := k.chainOf(t, victim.Process.Pid)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // killed
	live := k.verify(t)
	if got := live[chain]; got != "died" {
		t.Errorf("the chain of the killed process is %q while others run, want died", got)
	}
	if status, _ := serving.ask(t, http.MethodGet, "/api/v1/catalog", serving.token, nil); status != http.StatusOK {
		t.Errorf("GET from the server while others run = %d", status)
	}
	done.Wait()

	records := k.records(t)
	for i, list := range effects {
		for n, effect := range list {
			if got := records[effect]; got != "capability_started capability_executed" {
				t.Errorf("loop %d, call %d has the records %q, want its beginning and its end, once", i, n, got)
			}
		}
	}
	serving.stop(t)
	states := map[string]int{}
	for name, state := range k.verify(t) {
		states[state]++
		if (state == "ok") != (name != chain) {
			t.Errorf("chain %s is %s", name, state)
		}
	}
	if states["died"] != 1 || states["ok"] < loops*calls+2 {
		t.Errorf("chains = %v, want one that died and one of each call", states)
	}
}

// A house is a program with a state directory and a folder to work in.
type house struct {
	binary, home, work string
	env                []string // more variables
}

func newKen(t *testing.T) *house {
	t.Helper()
	k := &house{binary: program(t), home: t.TempDir(), work: t.TempDir()}
	files := map[string]string{filepath.Join(k.work, "note.txt"): "hello\n"}
	if os.Getenv("KEN_TEST_POSTGRES") != "" {
		files[filepath.Join(k.home, "ken.yaml")] = fmt.Sprintf("store: %q\n", storetest.Postgres(t))
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *house) command(args ...string) *exec.Cmd {
	cmd := exec.Command(k.binary, args...)
	cmd.Dir = k.work
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.home, "KEN_HOME=" + k.home, "TMPDIR=" + os.Getenv("TMPDIR"), "GORACE=atexit_sleep_ms=0"}, k.env...)
	return cmd
}

// json has the program print one document.
func (k *house) json(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := k.command(append([]string{"--json"}, args...)...) // what comes after a call is its own
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Errorf("ken %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
}

// call makes a call and returns the id of its effect.
func (k *house) call(t *testing.T, session, target, args string) string {
	t.Helper()
	var doc struct {
		Result struct{ Meta map[string]string }
	}
	k.json(t, &doc, "run", "--session", session, target, args)
	return doc.Result.Meta["effect"]
}

// verify returns the state of each chain, by its name.
func (k *house) verify(t *testing.T) map[string]string {
	t.Helper()
	var doc struct {
		OK     bool
		Chains []struct{ Chain, State, Problem string }
		Strays []string
	}
	k.json(t, &doc, "audit", "verify")
	states := map[string]string{}
	for _, c := range doc.Chains {
		states[c.Chain] = c.State
		if c.Problem != "" {
			t.Errorf("chain %s: %s", c.Chain, c.Problem)
		}
	}
	if !doc.OK || len(doc.Strays) > 0 {
		t.Errorf("audit verify: ok %v, strays %v", doc.OK, doc.Strays)
	}
	return states
}

// records returns the events of each effect, in the order of its chain.
func (k *house) records(t *testing.T) map[string]string {
	t.Helper()
	var doc struct {
		Records []struct {
			Event  string
			Effect string `json:"effect_id"`
		}
	}
	k.json(t, &doc, "audit", "query")
	events := map[string]string{}
	for _, r := range doc.Records {
		events[r.Effect] = strings.TrimSpace(events[r.Effect] + " " + r.Event)
	}
	return events
}

// chainOf waits for a process to begin its call and gives the name of its chain.
func (k *house) chainOf(t *testing.T, pid int) (name string) {
	t.Helper()
	ok := testkit.Until(func() bool {
		files, _ := filepath.Glob(filepath.Join(k.home, "audit", fmt.Sprintf("*-%d-*", pid)))
		if len(files) != 1 {
			return false
		}
		name, _, _ = strings.Cut(filepath.Base(files[0]), ".")
		text, err := os.ReadFile(files[0])
		return err == nil && bytes.Contains(text, []byte("capability_started"))
	})
	if !ok {
		t.Fatal("the process that is to be killed did not begin its call")
	}
	return name
}

// A server is a "ken serve" that runs.
type server struct {
	cmd    *exec.Cmd
	url    string
	token  string
	link   string // of the page
	stderr bytes.Buffer
}

func (k *house) serve(t *testing.T) *server {
	t.Helper()
	s := &server{cmd: k.command("serve", "--addr", "127.0.0.1:0", "--json")}
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	var hello struct{ URL, TokenFile, Page string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&hello); err != nil {
		t.Fatalf("ken serve said nothing: %v", err)
	}
	if hello.URL == "" {
		_ = s.cmd.Wait()
		t.Fatalf("ken serve does not serve:\n%s", s.stderr.String())
	}
	token, err := os.ReadFile(hello.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.token, s.link = hello.URL, strings.TrimSpace(string(token)), hello.Page
	return s
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	err := s.cmd.Process.Signal(syscall.SIGINT)
	if err == nil {
		err = s.cmd.Wait()
	}
	if err != nil {
		t.Errorf("ken serve ended with %v\n%s", err, s.stderr.String())
	}
}
