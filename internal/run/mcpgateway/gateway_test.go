//go:build unix

package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/source/mcptools"
	"ken/internal/testkit"
	"ken/internal/testkit/mcptest/sample"
)

// TestNothingStartsUntilNeeded goes from an unknown server to its first call, and
// to a second gateway that knows it from the file.
func TestNothingStartsUntilNeeded(t *testing.T) {
	cfg := Config{CacheDir: t.TempDir()}
	def := stdio(t, "s", "plain")
	g := gateway(t, cfg, def)
	if b := load(t, g); len(b.Capabilities) != 0 || len(b.Problems) != 1 || b.Problems[0].Code != "mcp-unlisted" {
		t.Fatalf("Load before any list = %+v", b)
	}
	if st := g.Status()[0]; st.State != Cold || st.Backends != 0 {
		t.Fatalf("Status() = %+v, want cold", st)
	}
	batches := watch(t, g.Sources()[0])
	b := <-batches
	have := byID(b)
	echo := have["mcp:s/echo"]
	if echo == nil || echo.Category != "s" || echo.Name != "echo" || echo.Run.Runner != runCall || echo.Origin.Format != mcptools.Format ||
		echo.Trust != capability.TrustUser || echo.Effects.ReadOnly != capability.Unsaid || echo.Said().ReadOnly != capability.Yes || !slices.Equal(echo.Permissions, []string{"exec", "network"}) {
		t.Fatalf("echo = %+v", echo)
	}
	if have["mcp:s/read_resource"] == nil || have["mcp:s/get_prompt"] == nil {
		t.Errorf("no capabilities for resources and prompts in %v", have)
	}
	gives(t, g, callAs("ada", "", "s/echo", `{"text":"hello"}`), "hello")
	if st := g.Status()[0]; st.State != Ready || st.Backends != 1 || st.Tools < 8 || st.Pid == 0 || st.Protocol == "" || st.Title != "Sample" || st.Isolation == nil {
		t.Errorf("Status() = %+v, want one back end: the one that was listed serves the first caller", st)
	}

	second := gateway(t, cfg, def)
	warm := byID(load(t, second))
	if len(warm) != len(have) || warm["mcp:s/echo"].Hash != echo.Hash {
		t.Errorf("a second gateway knows %d capabilities, want %d", len(warm), len(have))
	}
	if st := second.Status()[0]; st.State != Cold || st.Listed.IsZero() {
		t.Errorf("Status() of the second = %+v, want cold and listed", st)
	}
	d, err := second.Sources()[0].(capability.Detailer).Detail(t.Context(), warm["mcp:s/echo"])
	if err != nil || !strings.Contains(string(d.Schema), `"text"`) {
		t.Errorf("Detail() = %s, %v", d.Schema, err)
	}
	d, err = second.Sources()[0].(capability.Detailer).Detail(t.Context(), warm["mcp:s/read_resource"])
	if err != nil || !strings.Contains(string(d.Schema), `"uri"`) {
		t.Errorf("Detail() of read_resource = %s, %v", d.Schema, err)
	}
}

// TestListChangedGoesLive: a tool appears while the server runs; what did not
// change stays the same pointer.
func TestListChangedGoesLive(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		g := listed(t, Config{CacheDir: dir}, stdio(t, "s", "plain"))
		before := byID(load(t, g))
		batches := watch(t, g.Sources()[0])
		invoke(t, g, callAs("ada", "", "s/grow", `{"text":"sprout"}`))
		after := <-batches
		have := byID(after)
		if have["mcp:s/sprout"] == nil || len(have) != len(before)+1 {
			t.Fatalf("after grow: %d capabilities, before %d", len(have), len(before))
		}
		for id, c := range before {
			if have[id] != c {
				t.Errorf("%s is another pointer after an unrelated change", id)
			}
		}
		gives(t, g, callAs("ada", "", "s/sprout", ""), "new")
		// The places in the file have moved; the details follow.
		for _, c := range after.Capabilities {
			if _, err := g.Sources()[0].(capability.Detailer).Detail(t.Context(), c); err != nil {
				t.Errorf("Detail(%s) = %v", c.ID, err)
			}
		}
	}
}

// TestOneStart: many callers at once wait for one start.
func TestOneStart(t *testing.T) {
	g := listed(t, Config{}, stdio(t, "s", "plain"))
	first := pidOf(t, g, "ada", "", "s")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Wait(t, "the gateway notices", func() bool { return g.Status()[0].State != Ready })
	pids := make(chan string, 30)
	var wg sync.WaitGroup
	for range cap(pids) {
		wg.Go(func() {
			res, err := g.Invoke(t.Context(), callAs("ada", "", "s/pid", ""))
			if err != nil {
				t.Errorf("Invoke = %v", err)
			}
			pids <- textOf(res)
		})
	}
	wg.Wait()
	close(pids)
	one := <-pids
	for pid := range pids {
		if pid != one {
			t.Errorf("process %s answers, and %s", one, pid)
		}
	}
	if st := g.Status()[0]; one == strconv.Itoa(first) || st.Restarts != 1 || st.State != Ready || st.Err != "" {
		t.Errorf("process %s after %d, Status() = %+v, want one restart", one, first, st)
	}
}

// TestDiesInCall: a call that was on its way may have happened; the next works.
func TestDiesInCall(t *testing.T) {
	g := listed(t, Config{}, stdio(t, "s", "plain"))
	refused(t, g, callAs("ada", "", "s/crash", ""), capability.Upstream, "exit status 7")
	if st := g.Status()[0]; !strings.Contains(st.Err, "exit status 7") {
		t.Errorf("Status().Err = %q", st.Err)
	}
	gives(t, g, callAs("ada", "", "s/echo", `{"text":"x"}`), "x")
	// Again and again: it is left alone, for longer each time.
	for range 8 {
		_, err := g.Invoke(t.Context(), callAs("ada", "", "s/crash", ""))
		if capability.KindOf(err) == capability.Unavailable {
			refused(t, g, callAs("ada", "", "s/crash", ""), capability.Unavailable, "Ken starts it again in", "exit status 7")
			if st := g.Status()[0]; st.State != BackingOff {
				t.Errorf("State = %s, want backing off", st.State)
			}
			return
		}
	}
	t.Error("after 9 crashes it is started at once")
}

func TestCloseLeavesNoProcess(t *testing.T) {
	a, b := stdio(t, "a", "plain"), stdio(t, "b", "plain")
	b.Scope = ScopeSession
	g := listed(t, Config{}, a, b)
	var pids []int
	for _, s := range []string{"1", "2", "3"} {
		pids = append(pids, pidOf(t, g, "ada", s, "b"))
	}
	pids = append(pids, pidOf(t, g, "ada", "", "a"), pidOf(t, g, "bob", "", "a"))
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is there after Close", pid)
		}
	}
	refused(t, g, callAs("ada", "", "a/echo", ""), capability.Unavailable)
}

func TestScopes(t *testing.T) {
	user, session, shared := stdio(t, "user", "plain"), stdio(t, "session", "plain"), stdio(t, "shared", "plain")
	session.Scope, shared.Scope = ScopeSession, ScopeShared
	g := listed(t, Config{}, user, session, shared)
	for _, tt := range []struct {
		server                       string
		otherSession, otherPrincipal bool // share the process
	}{
		{"user", true, false}, {"session", false, false}, {"shared", true, true},
	} {
		base := pidOf(t, g, "ada", "1", tt.server)
		if again := pidOf(t, g, "ada", "1", tt.server); again != base {
			t.Errorf("%s: the same caller has processes %d and %d", tt.server, base, again)
		}
		if got := pidOf(t, g, "ada", "2", tt.server) == base; got != tt.otherSession {
			t.Errorf("%s: another session shares the process: %v, want %v", tt.server, got, tt.otherSession)
		}
		if got := pidOf(t, g, "bob", "1", tt.server) == base; got != tt.otherPrincipal {
			t.Errorf("%s: another principal shares the process: %v, want %v", tt.server, got, tt.otherPrincipal)
		}
	}
	pid := pidOf(t, g, "ada", "1", "session")
	g.EndSession("1")
	if alive(pid) {
		t.Errorf("process %d outlives its session", pid)
	}
	other := g.Status()[1]
	if other.Backends != 1 {
		t.Errorf("%d back ends are left, want that of session 2", other.Backends)
	}
}

func TestIdle(t *testing.T) {
	g := listed(t, Config{Idle: 200 * time.Millisecond}, stdio(t, "s", "plain"))
	pid := pidOf(t, g, "ada", "", "s")
	gives(t, g, callAs("ada", "", "s/sleep", `{"ms":600}`), "slept")
	testkit.Wait(t, "the idle server is stopped", func() bool { return !alive(pid) })
	testkit.Wait(t, "status is cold", func() bool { return g.Status()[0].State == Cold })
	if again := pidOf(t, g, "ada", "", "s"); again == pid {
		t.Errorf("pid %d again", again)
	}
}

func TestLimits(t *testing.T) {
	def := stdio(t, "s", "plain")
	def.Concurrent, def.Timeout = 1, 500*time.Millisecond
	g := listed(t, Config{}, def)
	pid := pidOf(t, g, "ada", "", "s")
	slow := make(chan error, 1)
	go func() {
		_, err := g.Invoke(t.Context(), callAs("ada", "", "s/sleep", `{"ms":60000}`))
		slow <- err
	}()
	b, err := g.all()[0].hold(key{principal: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.release()
	testkit.Wait(t, "the slow call is on its way", func() bool { return b.calls.isFull() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = g.Invoke(ctx, callAs("ada", "", "s/echo", ""))
	e, _ := errors.AsType[*capability.Error](err)
	if e == nil || e.Kind != capability.Unavailable || e.Rule != "mcp.servers.s.concurrent" {
		t.Errorf("second call = %v, want unavailable with the knob", err)
	}
	e, _ = errors.AsType[*capability.Error](<-slow)
	if e == nil || e.Kind != capability.Timeout || e.Rule != "mcp.servers.s.timeout" {
		t.Errorf("slow call = %v, want timeout with the knob", e)
	}
	if again := pidOf(t, g, "ada", "", "s"); again != pid {
		t.Errorf("a server that answers pings was restarted: %d, then %d", pid, again)
	}
}

// TestHeld: a definition that waits for a person starts nothing, and callers get
// an error that says so; once it is accepted the server is what it was.
func TestHeld(t *testing.T) {
	def := stdio(t, "s", "plain")
	g := listed(t, Config{CacheDir: t.TempDir()}, def)
	pid := pidOf(t, g, "ada", "", "s")
	held := def
	held.Held = "command changed: x was y"
	g.Replace([]Server{held})
	testkit.Wait(t, "the server is stopped", func() bool { return !alive(pid) })
	if e := refused(t, g, callAs("ada", "", "s/echo", ""), capability.Conflict, held.Held, "ken extension review mcp:s"); e.Rule != "mcp.import" {
		t.Errorf("the rule is %s, want the knob", e.Rule)
	}
	b := load(t, g)
	if len(b.Capabilities) != 0 || len(b.Problems) != 1 || b.Problems[0].Code != "mcp-held" {
		t.Errorf("Load = %+v, want a problem alone", b)
	}
	if st := g.List(t.Context(), "s")[0]; st.State != Failed || st.Pid != 0 || st.Rule != "mcp.import" {
		t.Errorf("List = %+v, want it failed and not started", st)
	}
	g.Replace([]Server{def})
	if pid := pidOf(t, g, "ada", "", "s"); !alive(pid) {
		t.Errorf("the server does not run after it was accepted")
	}
}

// TestSessionsTakeTurns: a session with many calls waiting does not keep another
// from a server.
func TestSessionsTakeTurns(t *testing.T) {
	t.Parallel()
	def := stdio(t, "s", "plain")
	def.Concurrent = 1
	g := listed(t, Config{}, def)
	b, err := g.all()[0].hold(key{principal: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.release()
	// The one place is taken until all have come.
	if err := b.calls.enter(t.Context(), whose{session: "gate"}); err != nil {
		t.Fatal(err)
	}
	const many = 8
	ended := make(chan string, many+1)
	begin := func(session string) {
		if _, err := g.Invoke(t.Context(), callAs("ada", session, "s/echo", `{"text":"x"}`)); err != nil {
			t.Errorf("Invoke = %v", err)
		}
		ended <- session
	}
	for i := range many {
		go begin("greedy")
		testkit.Wait(t, "the call waits", func() bool { return b.calls.waiting() == i+1 })
	}
	go begin("modest")
	testkit.Wait(t, "the call of the other session waits", func() bool { return b.calls.waiting() == many+1 })
	b.calls.leave()
	at := -1
	for i := range many + 1 {
		if <-ended == "modest" {
			at = i
		}
	}
	if at > 2 {
		t.Errorf("the other session's call ended after %d of %d, want it second or nearly", at, many)
	}
}

func (q *queue) isFull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.free == 0
}

func (q *queue) waiting() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.line {
		for _, line := range t.line {
			n += len(line)
		}
	}
	return n
}

// TestHang: a stopped server answers no ping and is ended.
func TestHang(t *testing.T) {
	t.Parallel()
	def := stdio(t, "s", "plain")
	def.Timeout = 200 * time.Millisecond
	g := listed(t, Config{}, def)
	pid := pidOf(t, g, "ada", "", "s")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The signal may reach the server after a call that is sent later.
	testkit.Wait(t, "a call on the stopped server runs out of time", func() bool {
		_, err := g.Invoke(t.Context(), callAs("ada", "", "s/echo", ""))
		return capability.KindOf(err) == capability.Timeout
	})
	testkit.Wait(t, "the stopped server is ended", func() bool { return !alive(pid) })
	if st := g.Status()[0]; !strings.Contains(st.Err, "not responding") {
		t.Errorf("Status() = %+v, want that it hangs", st)
	}
}

func TestBadServers(t *testing.T) {
	hangs := stdio(t, "hangs", "hangs")
	hangs.StartTimeout = 300 * time.Millisecond
	none := stdio(t, "none", "plain")
	none.Command = "no-such-program"
	dies := stdio(t, "dies", "dies")
	dies.Env["API_TOKEN"] = "${secret:token}"
	unset := stdio(t, "unset", "plain")
	unset.Args = []string{"--key=${NOT_SET}", "${secret:absent}"}
	both := stdio(t, "both", "plain")
	both.URL = "http://localhost/"
	remote := Server{Name: "remote", URL: "http://127.0.0.1:1/mcp"}
	off := stdio(t, "off", "plain")
	off.Disabled = true
	getenv := func(name string) (string, bool) { return "tok-1234567", name == "secret:token" }
	g := gateway(t, Config{Getenv: getenv}, hangs, none, dies, unset, both, remote, off)
	want := map[string]struct {
		state    State
		err, fix string
	}{
		"hangs":  {BackingOff, "300 ms", "more time"},
		"none":   {BackingOff, "program no-such-program is not installed", "install the program, or fix command of none in /home/u/.ken/mcp.json"},
		"dies":   {BackingOff, "no configuration file", "by hand"},
		"unset":  {BackingOff, "NOT_SET, secret absent", "ken secret set NOT_SET, or export it and end the daemon with ken mcp --stop, so that the next window starts one that has it; or fix unset in /home/u/.ken/mcp.json"},
		"both":   {Failed, "either a command or a url", "fix both in /home/u/.ken/mcp.json"},
		"remote": {BackingOff, "cannot be reached", "url"},
		"absent": {Failed, "server not found", "ken doctor"},
		"off":    {Disabled, "", ""},
	}
	for _, st := range g.List(t.Context(), "hangs", "none", "dies", "unset", "both", "remote", "off", "absent") {
		w := want[st.Name]
		if st.State != w.state || !strings.Contains(st.Err, w.err) || !strings.Contains(st.Fix, w.fix) {
			t.Errorf("%s: state %q, error %q, fix %q; want %+v", st.Name, st.State, st.Err, st.Fix, w)
		}
		if strings.Contains(st.Err, "tok-1234567") || strings.Contains(st.Stderr, "tok-1234567") {
			t.Errorf("%s: the secret is shown: %q", st.Name, st.Err)
		}
		delete(want, st.Name)
	}
	if len(want) > 0 {
		t.Errorf("List() leaves out %v", want)
	}
	for _, name := range []string{"hangs", "none", "dies", "unset", "both", "remote", "off"} {
		refused(t, g, callAs("ada", "", name+"/echo", ""), capability.Unavailable)
	}
	refused(t, g, callAs("ada", "", "absent/echo", ""), capability.NotFound)
}

// TestOddLists: what makes no sense is left out and told of; the rest works.
func TestOddLists(t *testing.T) {
	g := listed(t, Config{CacheDir: t.TempDir()}, stdio(t, "odd", "odd"))
	b := load(t, g)
	have := byID(b)
	for _, id := range []capability.ID{"mcp:odd/fine", "mcp:odd/twice", "mcp:odd/wide", "mcp:odd/a/b c", "mcp:odd/marked", "mcp:odd/read_resource", "mcp:odd/read_resource_", capability.ID("mcp:odd/" + strings.Repeat("m", 200))} {
		if have[id] == nil {
			t.Errorf("%s is missing", id)
		}
	}
	if len(have) != 8 {
		t.Errorf("%d capabilities, want 8", len(have))
	}
	st := g.Status()[0]
	if st.Noise != 1 || st.NoiseSample != "Welcome!" {
		t.Errorf("%d lines are noise, such as %q; want the welcome", st.Noise, st.NoiseSample)
	}
	all := fmt.Sprint(st.Problems)
	for _, want := range []string{"twice", "nnn", "missing name", "the resources cannot be listed: the server says: no store"} {
		if !strings.Contains(all, want) {
			t.Errorf("problems %s do not tell of %s", all, want)
		}
	}
	if have["mcp:odd/read_resource"].Run.Runner != runCall || have["mcp:odd/read_resource_"].Run.Runner != runResource {
		t.Error("the server's own read_resource does not keep its name")
	}
	if d, err := g.Sources()[0].(capability.Detailer).Detail(t.Context(), have["mcp:odd/wide"]); err != nil || len(d.Schema) < 85_000 {
		t.Errorf("Detail(wide) = %d bytes, %v", len(d.Schema), err)
	}
	for _, name := range []string{"a/b c", "wide", strings.Repeat("m", 200)} {
		gives(t, g, callAs("ada", "", "odd/"+name, ""), "done")
	}
}

// TestReplace: only what changed restarts, and its source goes on.
func TestReplace(t *testing.T) {
	cfg := Config{CacheDir: t.TempDir()}
	a, b, c := stdio(t, "a", "plain"), stdio(t, "b", "plain"), stdio(t, "c", "plain")
	a.Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	g := listed(t, cfg, a, b, c)
	a.Networks = slices.Clone(a.Networks) // which is no change
	was := byID(load(t, g))
	pids := map[string]int{}
	for _, name := range []string{"a", "b", "c"} {
		pids[name] = pidOf(t, g, "ada", "", name)
	}
	sources := g.Sources()
	second := watch(t, sources[1])
	third := watch(t, sources[2])
	b.Env = map[string]string{sample.Var: "more"}
	g.Replace([]Server{a, b, stdio(t, "d", "plain")})
	if got := byID(<-third); len(got) != 0 {
		t.Errorf("the source of a removed server still has %d capabilities", len(got))
	}
	var more map[capability.ID]*capability.Capability
	for more["mcp:b/extra"] == nil {
		more = byID(<-second)
	}
	if more["mcp:b/echo"] != was["mcp:b/echo"] {
		t.Error("a tool that is the same under the new definition is another pointer")
	}
	if got := pidOf(t, g, "ada", "", "a"); got != pids["a"] {
		t.Errorf("a was restarted: %d, then %d", pids["a"], got)
	}
	for _, name := range []string{"b", "c"} {
		if alive(pids[name]) {
			t.Errorf("process %d of %s outlives its definition", pids[name], name)
		}
	}
	now := g.Sources()
	if len(now) != 3 || now[0].Name() != sources[0].Name() || now[1].Name() != sources[1].Name() || now[2].Name() != "mcp:d" {
		t.Errorf("Sources() after Replace = %v", now)
	}
	refused(t, g, callAs("ada", "", "c/echo", ""), capability.NotFound)
	a.Networks = nil // the proxy of a running server has those of its start
	g.Replace([]Server{a})
	if got := pidOf(t, g, "ada", "", "a"); got == pids["a"] {
		t.Error("a server whose networks changed was not restarted")
	}
}

// TestFilesHoldNoSecrets looks through everything that was written.
func TestFilesHoldNoSecrets(t *testing.T) {
	dir := t.TempDir()
	def := stdio(t, "s", "plain")
	def.Env["API_TOKEN"], def.Env["PLAIN_TOKEN"] = "${secret:token}", "plain-secret-value"
	def.Include, def.Exclude = []string{"e*", "read_*"}, []string{"echo"}
	getenv := func(name string) (string, bool) {
		v, ok := map[string]string{"secret:token": "tok-1234567", "HOME": "/home/u", "OTHER": "not passed on"}[name]
		return v, ok
	}
	g := listed(t, Config{CacheDir: dir, Getenv: getenv}, def)
	env := invoke(t, g, callAs("ada", "", "s/env", ""))
	for _, want := range []string{"API_TOKEN=tok-1234567", "HOME=/home/u", "PATH="} {
		if !strings.Contains(env, want) {
			t.Errorf("the server's environment %q has no %s", env, want)
		}
	}
	for line := range strings.Lines(env) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"PATH", "HOME", "API_TOKEN", "PLAIN_TOKEN", sample.Var}, name) {
			t.Errorf("the server has the variable %s", name)
		}
	}
	have := byID(load(t, g))
	if len(have) != 2 || have["mcp:s/env"] == nil || have["mcp:s/read_resource"] == nil {
		t.Errorf("with include and exclude: %v", have)
	}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err == nil && (strings.Contains(string(data), "tok-1234567") || strings.Contains(string(data), "plain-secret-value")) {
			t.Errorf("%s holds a secret", p)
		}
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
