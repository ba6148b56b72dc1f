package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

func TestAsNobody(t *testing.T) { executortest.AsNobody(t, 15) }

// A bench is an executor with a few programs and capabilities of its own.
type bench struct {
	more []string // permissions besides exec
	*Executor
	dir     string // of everything
	catalog map[capability.ID]*capability.Capability
	schemas map[capability.ID]string
}

const argsSchema = `{"type":"object","properties":{"args":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`

func newBench(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	executortest.Confined(t)
	b := &bench{dir: executortest.Dir(t), catalog: map[capability.ID]*capability.Capability{}, schemas: map[capability.ID]string{}}
	bin := filepath.Join(b.dir, "bin")
	executortest.Must(t, os.Mkdir(bin, 0o755))
	for name, script := range map[string]string{
		"show":  `for a in "$@"; do printf '<%s>' "$a"; done`,
		"run":   `eval "$2"`, // as good as any tool that was taken over
		"fail":  `echo out; echo err >&2; exit "$2"`,
		"flood": `head -c 5000000 /dev/zero | tr '\0' x; echo END`,
	} {
		executortest.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	cfg := Config{
		Extensions: filepath.Join(b.dir, "extensions"), Path: bin + ":/usr/bin:/bin",
		Lookup: func(_ context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
			c, ok := b.catalog[id]
			if !ok {
				return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "look up", Target: string(id)}
			}
			return c, capability.Detail{Schema: json.RawMessage(b.schemas[id])}, nil
		},
		Limits: sandbox.Limits{Wall: testkit.Patience},
	}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	executortest.Must(t, err)
	t.Cleanup(func() { e.Close() })
	b.Executor = e
	for _, tool := range []string{"show", "run", "fail", "flood"} {
		b.add("tools."+tool, "do", &capability.Recipe{Runner: "exec." + tool, Action: "do"}, argsSchema)
	}
	return b
}

// add puts one action of an extension into the catalog.
// packaged is where the capabilities of packages come from.
var packaged = capability.Origin{Format: capability.FormatExtension}

func (b *bench) add(extension, action string, r *capability.Recipe, schema string) *capability.Capability {
	id := capability.ID("command:" + strings.TrimPrefix(extension, "tools.") + "/" + action)
	c := &capability.Capability{ID: id, Kind: capability.KindCommand, Run: r, RequiredTools: []string{"extension:" + extension}, Permissions: append([]string{"exec"}, b.more...), Hash: "h1", Origin: packaged}
	b.catalog[id], b.schemas[id] = c, schema
	return c
}

func (b *bench) invoke(t *testing.T, call capability.Call) capability.Result {
	t.Helper()
	r, err := b.Invoke(t.Context(), call)
	if err != nil {
		t.Fatalf("Invoke(%s %s) = %v, want a result", call.Target, call.Arguments, err)
	}
	return r
}

// sh runs a script in the work directory of tools.run.
func (b *bench) sh(t *testing.T, script string) capability.Result {
	t.Helper()
	return b.invoke(t, executortest.Call("command:run/do", map[string]any{"args": []string{script}}))
}

func stdout(r capability.Result) string { return executortest.Text(r, executor.MIMEStdout) }

// TestChecklist is S5.54 for the programs of extensions.
func TestChecklist(t *testing.T) {
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			b := newBench(t, nil)
			b.add("tools.run", "typed", &capability.Recipe{Runner: "exec.run", Action: "typed"},
				`{"type":"object","properties":{"n":{"type":"integer","x-ken-position":1},"how":{"type":"string","enum":["a","b"],"x-ken-flag":"--how"}},"required":["n"]}`)
			for args, want := range map[string]string{
				`{}`: "n is missing", `{"n":"1"}`: "n is not of the type integer", `{"n":1,"m":2}`: `unknown argument "m"`, `{"N":1}`: `unknown argument "N"`,
				`{"n":1,"n":2}`: "duplicate argument", `{"n":1,"how":"c"}`: "how is not one", `[1]`: "not a JSON object", `{"n":1} x`: "text after", `{"n":1.5}`: "integer", `{`: "not JSON",
			} {
				executortest.Refused(t, b, executortest.Call("command:run/typed", args), capability.Invalid, want)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "extensions", "tools.run")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a refused call left a work directory: %v", err)
			}
		},
		WorkDirBounds: testWorkDir,
		EnvFilter:     testEnvironment,
		Timeout:       testTimeout,
		OutputLimit: func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Limits.Output = 4000 })
			r := b.invoke(t, executortest.Call("command:flood/do", `{}`))
			out := stdout(r)
			if len(out) > 4200 || !strings.HasPrefix(out, "xxx") || !strings.HasSuffix(out, "xEND\n") || r.Meta["truncated"] != "true" || r.Meta["stdout_bytes"] != "5000004" {
				t.Errorf("a flood gave %d bytes ending in %q and %v", len(out), out[max(0, len(out)-9):], r.Meta)
			}
		},
		Log: func(t *testing.T) {
			b := newBench(t, nil)
			r := b.invoke(t, executortest.Call("command:fail/do", `{"args":["3"]}`))
			for key, want := range map[string]string{"exit_code": "3", "end": "exited", "tool": "fail", "args_count": "2", "work_dir": "tools.fail/work", "extension_id": "tools.fail", "truncated": "false"} {
				if r.Meta[key] != want {
					t.Errorf("Meta[%s] = %q, want %q", key, r.Meta[key], want)
				}
			}
			var iso sandbox.Isolation
			if err := json.Unmarshal([]byte(r.Meta["isolation"]), &iso); err != nil || iso.Profile == "" || len(r.Meta["program_sha256"]) != 64 || r.Meta["duration_ms"] == "" {
				t.Errorf("Meta = %v, want the isolation, the program's hash and the duration", r.Meta)
			}
		},
		SecureErrors: func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Getenv = func(string) (string, bool) { return "hunter2secret", true } })
			b.add("tools.gone", "do", &capability.Recipe{Runner: "exec.gone", Action: "do"}, argsSchema)
			b.add("tools.show", "env", &capability.Recipe{Runner: "exec.show", Env: []string{"LD_PRELOAD"}}, argsSchema)
			for _, call := range []capability.Call{
				executortest.Call("command:gone/do", `{"args":["my-private-argument"]}`),
				executortest.Call("command:show/env", `{"args":["my-private-argument"]}`),
				executortest.Call("command:show/do", `{"args":["--my-private-argument"]}`),
				executortest.Call("command:show/do", `{"args":{"my-private-argument":1}}`),
			} {
				_, err := b.Invoke(t.Context(), call)
				if err == nil {
					t.Errorf("Invoke(%s %s) = nil, want an error", call.Target, call.Arguments)
					continue
				}
				for _, leak := range []string{b.dir, "my-private-argument", "hunter2secret"} {
					if strings.Contains(err.Error(), leak) {
						t.Errorf("the error %q holds %q", err, leak)
					}
				}
			}
		},
		MaliciousInputs: testAttacks,
		PermissionReview: func(t *testing.T) {
			b := newBench(t, nil)
			c := b.catalog["command:show/do"]
			f, err := b.Facts(t.Context(), executortest.Call("command:show/do", `{"args":["https://Api.Example.com:8443/x","a"]}`), c)
			if err != nil || !slices.Equal(f.Required, []string{"exec", "network"}) || !slices.Equal(f.Hosts, []string{"api.example.com"}) ||
				len(f.Commands) != 1 || !slices.Equal(f.Commands[0], []string{"show", "do", "https://Api.Example.com:8443/x", "a"}) {
				t.Errorf("Facts = %+v, %v, want the command, its host, exec and network", f, err)
			}
			c.Permissions = nil // K5.01: a permission that is not declared is required all the same
			if f, err = b.Facts(t.Context(), executortest.Call("command:show/do", `{"args":["a"]}`), c); err != nil || !slices.Equal(f.Required, []string{"exec"}) {
				t.Errorf("Facts = %+v, %v, want exec required", f, err)
			}
		},
	}.Run(t)
}

func testWorkDir(t *testing.T) {
	b := newBench(t, nil)
	secret := filepath.Join(b.dir, "secret.txt")
	executortest.Must(t, os.WriteFile(secret, []byte("TOPSECRET"), 0o644))
	// S5.27: a program that does not declare permission to write cannot, and is
	// told so.
	if r := b.sh(t, `echo lost > mine; echo lost > ../lost.txt; cat /etc/passwd`); !strings.Contains(fmt.Sprint(r.Parts), "Read-only file system") || strings.Contains(stdout(r), "daemon") {
		t.Errorf("with exec alone: %+v", r)
	}
	b.more = []string{executor.PermWrite}
	b.add("tools.run", "do", &capability.Recipe{Runner: "exec.run", Action: "do"}, argsSchema)
	r := b.sh(t, `echo kept > mine && cat mine && pwd && echo "$HOME"`)
	work := filepath.Join(b.dir, "extensions", "tools.run", "work")
	if got, want := stdout(r), "kept\n"+work+"\n"+work+"\n"; got != want {
		t.Errorf("in the work directory: %q, want %q", got, want)
	}
	executortest.File(t, filepath.Join(work, "mine"), "kept\n")
	b.add("tools.other", "do", &capability.Recipe{Runner: "exec.run", Action: "do"}, argsSchema)
	b.invoke(t, executortest.Call("command:other/do", map[string]any{"args": []string{"echo theirs > private"}}))
	other := filepath.Join(b.dir, "extensions", "tools.other", "work", "private")
	executortest.File(t, other, "theirs\n")
	r = b.sh(t, `cat '`+secret+`' '`+other+`' ../../tools.other/work/private; echo x > '`+secret+`'; echo x > '`+other+`'; ln -s '`+secret+`' l; cat l`)
	if all := executortest.Text(r, ""); strings.Contains(all, "TOPSECRET") || strings.Contains(all, "theirs") {
		t.Errorf("files outside the work directory were read: %q", all)
	}
	for name, want := range map[string]string{secret: "TOPSECRET", other: "theirs\n"} {
		executortest.File(t, name, want)
	}

	for _, id := range []string{"..", "../../etc", ".hidden", "a b", ""} {
		c := b.add("tools.bad", "do", &capability.Recipe{Runner: "exec.show"}, argsSchema)
		c.RequiredTools = []string{"extension:" + id}
		executortest.Fails(t, b, executortest.Call("command:bad/do", `{}`), capability.Invalid)
	}
}

func testEnvironment(t *testing.T) {
	t.Setenv("KEN_TEST_LEAK", "leaked")
	t.Setenv("OPENAI_API_KEY", "leaked")
	b := newBench(t, func(c *Config) {
		c.Getenv = func(name string) (string, bool) { return "value of " + name, true }
	})
	r := &capability.Recipe{Runner: "exec.run", Action: "do", Env: []string{"REGION", "PATH", "HOME"}}
	c := b.add("tools.env", "do", r, argsSchema)
	c.RequiredSecrets = []string{"SERVICE_TOKEN"}
	got := stdout(b.invoke(t, executortest.Call("command:env/do", `{"args":["env"]}`)))
	var names []string
	for line := range strings.Lines(got) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	// The variables that keep git from running a repository's programs are set
	// by Ken.
	settings := 0
	names = slices.DeleteFunc(names, func(n string) bool {
		if strings.HasPrefix(n, "GIT_CONFIG_KEY_") {
			settings++
		}
		return strings.HasPrefix(n, "GIT_CONFIG_")
	})
	if !strings.Contains(got, "=core.fsmonitor\n") || !strings.Contains(got, "GIT_CONFIG_COUNT="+strconv.Itoa(settings)+"\n") || strings.Contains(got, "VALUE_0=value of") {
		t.Errorf("the settings of git are %q", got)
	}
	want := []string{"DEBIAN_FRONTEND", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "LANG", "NO_COLOR", "PAGER", "PATH", "PWD", "REGION", "SERVICE_TOKEN", "TERM"}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "OLDPWD" || n == "_" || n == "SHLVL" }) // the shell's own
	if !slices.Equal(names, want) {
		t.Errorf("the environment holds %q, want %q", names, want)
	}
	if !strings.Contains(got, "SERVICE_TOKEN=value of SERVICE_TOKEN\n") || strings.Contains(got, "leaked") || strings.Contains(got, "HOME=value") || strings.Contains(got, "PATH=value") {
		t.Errorf("the environment is %q", got)
	}
	for _, name := range []string{"LD_PRELOAD", "BASH_ENV", "GITHUB_TOKEN"} {
		r.Env = []string{name}
		executortest.Refused(t, b, executortest.Call("command:env/do", `{"args":["env"]}`), capability.Invalid, name)
	}
}

func testTimeout(t *testing.T) {
	word := executortest.Nap(86311)
	b := newBench(t, nil)
	b.catalog["command:run/do"].Run.TimeoutSec = 1
	if r := b.sh(t, "sleep "+word); !r.Failed || r.Meta["end"] != "timed-out" || r.Meta["limit"] != "wall" {
		t.Errorf("a run over its time gave %+v, want a failed result", r)
	}
	// A recipe cannot raise the cap.
	b = newBench(t, func(c *Config) { c.Limits.Wall = 100 * time.Millisecond })
	b.catalog["command:run/do"].Run.TimeoutSec = 3600
	if r := b.sh(t, "sleep "+word); r.Meta["end"] != "timed-out" {
		t.Errorf("a recipe raised its time: %+v", r.Meta)
	}
	// The caller can stop it.
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go func() { <-begun; cancel() }()
	call := executortest.Call("command:run/do", map[string]any{"args": []string{"(setsid sleep " + word + " &); sleep " + word + " & echo begun; sleep " + word}})
	call.Live = signal(begun)
	b = newBench(t, nil)
	res, err := b.Invoke(ctx, call)
	if err != nil || !res.Failed || res.Meta["end"] != "cancelled" || stdout(res) != "begun\n" || executortest.Running(t, word) {
		t.Errorf("a cancelled run gave %+v, %v", res, err)
	}
}

// signal is a writer that closes at the first byte.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case <-s:
	default:
		close(s)
	}
	return len(p), nil
}

// testAttacks: whatever a value is, it arrives as one argument, as it is, or
// the call is refused.
func testAttacks(t *testing.T) {
	b := newBench(t, nil)
	attacks := []string{"; id", "$(id)", "`id`", "a b", "", " ", "\n", "'", "\"", "*", "~root", "-", "--", "-rf", "--output=/etc/x", "a\x00b", "{args}", "\\", strings.Repeat("a", 200_000)}
	if os.Getenv("KEN_ATTACKS") != "" {
		attacks = append(attacks, executortest.Attacks(t, "argument_injection.jsonl")...)
	}
	for _, text := range attacks {
		call := executortest.Call("command:show/do", map[string]any{"args": []string{text}})
		refused := len(text) > 1 && text[0] == '-' || strings.ContainsRune(text, 0) || len(text) > 128<<10
		if refused {
			executortest.Fails(t, b, call, capability.Invalid)
			continue
		}
		if got, want := stdout(b.invoke(t, call)), "<do><"+text+">"; got != want {
			t.Errorf("Invoke(%.40q) gave %.60q, want %.60q", text, got, want)
		}
	}
}

// TestStatuses: what a manifest calls success is success, and failing is a
// result that keeps its output (K4.05, S5.17).
func TestStatuses(t *testing.T) {
	b := newBench(t, nil)
	c := b.catalog["command:fail/do"]
	for _, tt := range []struct {
		ok     []int
		status string
		failed bool
	}{
		{nil, "0", false}, {nil, "1", true}, {[]int{0, 1}, "1", false}, {[]int{0, 1}, "2", true}, {[]int{1}, "0", true},
	} {
		c.Run.OKStatus = tt.ok
		r := b.invoke(t, executortest.Call("command:fail/do", map[string]any{"args": []string{tt.status}}))
		if r.Failed != tt.failed || r.Meta["exit_code"] != tt.status || stdout(r) != "out\n" || executortest.Text(r, executor.MIMEStderr) != "err\n" {
			t.Errorf("exit %s with okStatus %v: %+v, want failed %v and both streams", tt.status, tt.ok, r, tt.failed)
		}
	}
}

// TestProgram: a program is found in fixed folders only, and is the one that
// was pinned (K5.06, K5.13, S5.11, S5.13).
func TestProgram(t *testing.T) {
	for runner, want := range map[string]string{
		"exec.postman_cli": "postman", "exec.jq_tool": "jq", "exec.git": "git", "exec.aws_client": "aws_client", "exec.my_toolbox": "my_toolbox",
		"exec.": "", "exec.../../bin/sh": "", "exec..sh": "", "exec.Git": "", "api.git": "", "exec.a b": "", "exec._cli": "",
	} {
		if got, err := Tool(runner); got != want || (want == "") != (err != nil) {
			t.Errorf("Tool(%q) = %q, %v, want %q", runner, got, err, want)
		}
	}
	b := newBench(t, nil)
	b.sh(t, `printf '#!/bin/sh\necho planted\n' > evil; chmod +x evil`)
	c := b.add("tools.run", "evil", &capability.Recipe{Runner: "exec.evil"}, argsSchema)
	executortest.Refused(t, b, executortest.Call("command:run/evil", `{}`), capability.Unavailable, "program evil is not installed")
	for _, argv := range []string{"./evil", "work/evil", "../evil"} {
		c.Run.Argv = []string{argv}
		executortest.Refused(t, b, executortest.Call("command:run/evil", `{}`), capability.Unavailable, "relative path")
	}
	show := b.catalog["command:show/do"]
	p, err := b.programs.Find("show")
	executortest.Must(t, err)
	show.Run.ProgramSHA256 = p.SHA256
	if r := b.invoke(t, executortest.Call("command:show/do", `{}`)); stdout(r) != "<do>" || r.Meta["program_sha256"] != p.SHA256 {
		t.Errorf("the pinned program gave %+v", r)
	}
	executortest.Must(t, os.WriteFile(p.Path, []byte("#!/bin/sh\necho other\n"), 0o755))
	executortest.Refused(t, b, executortest.Call("command:show/do", `{}`), capability.Denied, "program_sha256")
	executortest.Must(t, os.Chmod(p.Path, 0o777))
	show.Run.ProgramSHA256 = ""
	executortest.Refused(t, b, executortest.Call("command:show/do", `{}`), capability.Unavailable, "any user can write")
}

// TestChanged: a capability that is not the one decided on is not run.
func TestChanged(t *testing.T) {
	b := newBench(t, nil)
	call := executortest.Call("command:show/do", `{}`)
	call.CapabilityHash = "h0"
	executortest.Refused(t, b, call, capability.Conflict, "since the decision")
}

// TestNetwork: nothing is reached unless it was granted, and then only that
// (S5.25); the listener counts.
func TestNetwork(t *testing.T) {
	testkit.Programs(t, "curl")
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hits++; w.Write([]byte("hello")) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	var grant Grant
	b := newBench(t, func(c *Config) {
		c.Grant = func(context.Context, capability.Call, *capability.Capability) (Grant, error) { return grant, nil }
	})
	if sandbox.Probe(t.Context()).Isolation.Profile != sandbox.Full {
		t.Skip("cannot here: there is no network namespace")
	}
	script := `curl -s -m 5 ` + srv.URL
	if r := b.sh(t, script); !r.Failed || hits != 0 {
		t.Errorf("without a grant: %+v, %d hits", r, hits)
	}
	grant = Grant{Hosts: []string{"127.0.0.1:" + port}, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if r := b.sh(t, script); r.Failed || stdout(r) != "hello" || hits != 1 || r.Meta["connections"] != "1" {
		t.Errorf("with a grant: %+v, %d hits", r, hits)
	}
	grant.Hosts = []string{"example.com:80"}
	if r := b.sh(t, script); stdout(r) == "hello" || hits != 1 || r.Meta["connections_refused"] == "0" {
		t.Errorf("with another grant: %+v, %d hits", r, hits)
	}
}

// TestWorkDirIsNotBorrowed: only what a package brought works in its folder. A
// tool that merely says it needs the package has one of its own, and one of the
// same name from another project another.
func TestWorkDirIsNotBorrowed(t *testing.T) {
	spy := &capability.Capability{ID: "tool:spy", Kind: capability.KindTool, RequiredTools: []string{"extension:tools.git"}, Trust: capability.TrustWorkspace, Origin: capability.Origin{Format: "manifest", Source: "/a/.ken"}}
	other := *spy
	other.Origin.Source = "/b/.ken"
	mine := *spy
	mine.Trust = capability.TrustUser
	git := &capability.Capability{ID: "command:git/log", Kind: capability.KindCommand, RequiredTools: []string{"extension:tools.git"}, Origin: packaged}
	seen := map[string]bool{}
	for _, c := range []*capability.Capability{spy, &other, &mine, git} {
		name, err := executor.WorkName(c)
		if err != nil || seen[name] {
			t.Errorf("WorkName(%s of %s) = %q, %v; want a folder of its own", c.ID, c.Origin.Source, name, err)
		}
		seen[name] = true
	}
	if !seen["tools.git"] || !seen["tool_spy"] {
		t.Errorf("folders %v, want tools.git and tool_spy among them", seen)
	}
}
