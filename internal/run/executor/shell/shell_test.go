package shell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/testkit/executortest"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

func TestAsNobody(t *testing.T) { executortest.AsNobody(t, 20) }

// newShell makes a shell over a workspace of its own.
func newShell(t *testing.T, s Settings, change func(*Config)) (*Executor, string) {
	t.Helper()
	executortest.Confined(t)
	dir := executortest.Dir(t)
	ws := filepath.Join(dir, "workspace")
	executortest.Must(t, os.MkdirAll(filepath.Join(ws, "sub dir"), 0o755))
	cfg := Config{Workspace: ws, Settings: func() Settings { return s }}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	executortest.Must(t, err)
	t.Cleanup(func() { e.Close() })
	return e, ws
}

func cmd(line string, more ...any) capability.Call {
	args := map[string]any{"cmd": line}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return executortest.Call("tool:shell", args)
}

func run(t *testing.T, e *Executor, call capability.Call) capability.Result {
	t.Helper()
	r, err := e.Invoke(t.Context(), call)
	if err != nil {
		t.Fatalf("Invoke(%s) = %v, want a result", call.Arguments, err)
	}
	return r
}

// says wants a call to write that to its output.
func says(t *testing.T, e *Executor, call capability.Call, want string) {
	t.Helper()
	if r := run(t, e, call); stdout(r) != want {
		t.Errorf("Invoke(%s) = %+v, want %q", call.Arguments, r, want)
	}
}

func stdout(r capability.Result) string { return executortest.Text(r, executor.MIMEStdout) }

var (
	listed = Settings{Mode: Allowlist, AllowedPrefixes: []string{"echo", "pwd", "ls", "env", "cat", "git log", "printf *x"}}
	full   = Settings{Mode: Full}
)

// homeGuards guard .profile and .netrc.
type homeGuards struct{}

func (homeGuards) Secret(name string) bool                  { return filepath.Base(name) == ".netrc" }
func (homeGuards) Protected(name string) bool               { return filepath.Base(name) == ".profile" }
func (homeGuards) SecretWhole(dir string) bool              { return false }
func (homeGuards) ProtectedWhole(dir string) bool           { return false }
func (homeGuards) Named(string, [][]string) []executor.Path { return nil }

// TestHome: every principal has a home of its own, which keeps what tools write,
// and the names in it are guarded.
func TestHome(t *testing.T) {
	homes := executortest.Dir(t)
	e, _ := newShell(t, full, func(c *Config) {
		c.Home = func(p capability.Principal) string { return filepath.Join(homes, "of-"+p.ID) }
		c.Guards = func() executor.Guards { return homeGuards{} }
	})
	as := func(who, line string) capability.Result {
		call := cmd(line)
		call.Principal.ID = who
		return run(t, e, call)
	}
	r := as("ada", "P=.profile; echo good > $HOME/$P; echo hunter2 > $HOME/.netrc; echo kept > $HOME/note")
	if r.Failed || r.Meta["made"] != "~/.profile" {
		t.Errorf("Meta = %v, want what was made", r.Meta)
	}
	r = as("ada", "cat $HOME/note $HOME/.p*; P=.profile; echo evil >> $HOME/$P; mv $HOME/.p* $HOME/x; cat $HOME/.n*; true")
	if got := stdout(r); got != "kept\ngood\n" || r.Meta["protected"] != "~/.profile" || r.Meta["masked"] != "~/.netrc" {
		t.Errorf("Run = %q, %v", got, r.Meta)
	}
	executortest.File(t, filepath.Join(homes, "of-ada/.profile"), "good\n")
	if r := as("bob", "ls -A $HOME; ls "+homes+"/*"); strings.Contains(stdout(r), "note") {
		t.Errorf("another principal sees %q", stdout(r))
	}
}

// TestChecklist is S5.54 for the shell.
func TestChecklist(t *testing.T) {
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			e, _ := newShell(t, full, nil)
			for args, want := range map[string]string{
				`{}`: "cmd is empty", `{"cmd":" "}`: "cmd is empty", `{"cmd":1}`: "argument cmd is number", `{"cmd":"ls","x":1}`: `unknown argument "x"`, `{"CMD":"ls"}`: `unknown argument "CMD"`,
				`{"cmd":"ls","cmd":"id"}`: "duplicate argument", `{"cmd":"ls","timeoutMs":0}`: "above zero", `{"cmd":"ls","maxOutputChars":-1}`: "above zero",
				`{"cmd":"ls","command":"id"}`: "both", `{"cmd":"echo 'x"}`: "line 1, column 6", `{"cmd":"a\u0000b"}`: "control character", `{"cmd":"ls","cwd":"a\u0000"}`: "control character",
			} {
				executortest.Refused(t, e, executortest.Call("tool:shell", args), capability.Invalid, want)
			}
		},
		WorkDirBounds: testCwd,
		EnvFilter: func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "leaked")
			e, _ := newShell(t, full, func(c *Config) {
				c.Env, c.Getenv = []string{"REGION", "HOME"}, func(string) (string, bool) { return "north", true }
			})
			got := stdout(run(t, e, cmd("env")))
			if strings.Contains(got, "leaked") || !strings.Contains(got, "REGION=north\n") || strings.Contains(got, "HOME=north") || !strings.Contains(got, "PAGER=cat\n") {
				t.Errorf("the environment is %q", got)
			}
			e, _ = newShell(t, full, func(c *Config) { c.Env = []string{"LD_PRELOAD"} })
			executortest.Fails(t, e, cmd("env"), capability.Denied)
		},
		Timeout:     testTimeout,
		OutputLimit: testOutput,
		Log: func(t *testing.T) { // S4.30: command, exit code, duration, truncation
			e, _ := newShell(t, full, nil)
			r := run(t, e, cmd("echo out; echo err >&2; exit 7"))
			for key, want := range map[string]string{"exit_code": "7", "truncated": "false", "tool": "shell", "mode": "full", "cwd": ".", "end": "exited"} {
				if r.Meta[key] != want {
					t.Errorf("Meta[%s] = %q, want %q", key, r.Meta[key], want)
				}
			}
			if r.Meta["duration_ms"] == "" || !strings.Contains(r.Meta["isolation"], `"profile"`) {
				t.Errorf("Meta = %v, want duration and isolation", r.Meta)
			}
			// S4.31: a model can go on from it.
			if !r.Failed || executortest.Text(r, "") != "exit status 7out\nerr\n" {
				t.Errorf("a failed command gave %+v", r)
			}
		},
		SecureErrors: func(t *testing.T) {
			e, ws := newShell(t, listed, nil)
			for _, call := range []capability.Call{
				cmd("rm hunter2secret"), cmd("echo hunter2secret; id"), cmd("echo 'hunter2secret"), cmd("ls", "cwd", "/etc/hunter2secret"), cmd("ls", "cwd", "hunter2secret"),
			} {
				_, err := e.Invoke(t.Context(), call)
				if err == nil || strings.Contains(err.Error(), "hunter2secret") || strings.Contains(err.Error(), ws) {
					t.Errorf("Invoke(%s) = %v, want an error without the argument", call.Arguments, err)
				}
			}
		},
		MaliciousInputs: testAttacks,
		PermissionReview: func(t *testing.T) {
			e, _ := newShell(t, full, nil)
			f, err := e.Facts(t.Context(), cmd("git log | head -3"), nil)
			if err != nil || !slices.Equal(f.Required, []string{"exec"}) || !reflect.DeepEqual(f.Commands, [][]string{{"git", "log"}, {"head", "-3"}}) {
				t.Errorf("Facts = %+v, %v", f, err)
			}
			tool := Tools()[0]
			if !slices.Equal(tool.Capability.Permissions, []string{"exec", "filesystem.read", "filesystem.write"}) || tool.Capability.HasSideEffects() == false {
				t.Errorf("Tools() = %+v, want exec and the workspace's files declared", tool.Capability)
			}
		},
	}.Run(t)
}

// testCwd is S4.27 and S4.44.
func testCwd(t *testing.T) {
	for _, s := range []Settings{listed, full} {
		e, ws := newShell(t, s, nil)
		executortest.Must(t, os.Symlink("/etc", filepath.Join(ws, "out")))
		executortest.Must(t, os.WriteFile(filepath.Join(filepath.Dir(ws), "secret"), []byte("TOPSECRET"), 0o644))
		for cwd, want := range map[string]string{"": ws, ".": ws, "sub dir": filepath.Join(ws, "sub dir"), ws: ws, ws + "/sub dir": filepath.Join(ws, "sub dir")} {
			says(t, e, cmd("pwd", "cwd", cwd), want+"\n")
		}
		for _, cwd := range []string{"..", "sub dir/../..", "/etc", "/", ws + "-other", filepath.Dir(ws)} {
			executortest.Refused(t, e, cmd("pwd", "cwd", cwd), capability.Denied, "allowAnyCwd")
		}
		executortest.Fails(t, e, cmd("pwd", "cwd", "out"), capability.Denied)
		if r := run(t, e, cmd("cat ../secret")); !r.Failed || strings.Contains(executortest.Text(r, ""), "TOPSECRET") {
			t.Errorf("%s: a file outside the workspace was read: %+v", s.Mode, r)
		}
		s.AllowAnyCwd = true
		other := executortest.Dir(t)
		e, _ = newShell(t, s, nil)
		says(t, e, cmd("pwd", "cwd", other), other+"\n")
		if f, err := e.Facts(t.Context(), cmd("pwd", "cwd", other), nil); err != nil || !slices.Contains(f.Paths, executor.Path{Name: other, Write: true}) {
			t.Errorf("with allowAnyCwd: Facts = %+v, %v, want the folder", f, err)
		}
	}
	// The positive control: in the workspace there is writing.
	e, ws := newShell(t, full, nil)
	run(t, e, cmd("echo kept > ../mine", "cwd", "sub dir"))
	executortest.File(t, filepath.Join(ws, "mine"), "kept\n")
}

// testTimeout is S4.28, S4.34, S4.42 and K4.02, K4.03.
func testTimeout(t *testing.T) {
	word := executortest.Nap(86322)
	e, _ := newShell(t, Settings{Mode: Full, Timeout: 200 * time.Millisecond}, nil)
	if r := run(t, e, cmd("(setsid sleep "+word+" &); sleep "+word, "timeoutMs", 60_000)); !r.Failed || r.Meta["end"] != "timed-out" {
		t.Errorf("the request's time beat the setting's: %+v", r)
	}
	e, _ = newShell(t, full, nil)
	if r := run(t, e, cmd("sleep "+word, "timeoutMs", 200)); r.Meta["end"] != "timed-out" {
		t.Errorf("the request's time did not count: %+v", r)
	}
	if executortest.Running(t, word) {
		t.Error("a process outlived its call")
	}
	for _, tt := range []struct {
		set  time.Duration
		ask  int64
		want time.Duration
	}{{0, 0, 15 * time.Second}, {time.Hour, 0, 120 * time.Second}, {time.Hour, 1 << 62, 120 * time.Second}, {time.Minute, 5, 5 * time.Millisecond}} {
		q := request{settings: Settings{Timeout: tt.set}}
		var in input
		if tt.ask > 0 {
			in.TimeoutMs = &tt.ask
		}
		if q.limit(in); q.timeout != tt.want {
			t.Errorf("limit(%v, %d) = %v, want %v", tt.set, tt.ask, q.timeout, tt.want)
		}
	}
}

// testOutput is S4.29, S4.35, S4.43, S4.U04 and K4.08: what is written is kept
// up to the sandbox's limit, head and tail, and the runner is told how much of
// it to show.
func testOutput(t *testing.T) {
	e, _ := newShell(t, Settings{Mode: Full, MaxOutputChars: 100}, nil)
	flood := cmd("echo BEGIN; head -c 3000000 /dev/zero | tr '\\0' x; echo END", "maxOutputChars", 1_000_000)
	r := run(t, e, flood)
	out := stdout(r)
	if len(out) > 1<<20+100 || !strings.HasPrefix(out, "BEGIN\n") || !strings.HasSuffix(out, "xEND\n") || r.Meta["truncated"] != "true" || r.Meta["stdout_bytes"] != "3000010" {
		t.Errorf("a flood gave %d bytes, %.20q … and %v", len(out), out, r.Meta)
	}
	for _, tt := range []struct{ set, ask, want int }{{100, 0, 100}, {100, 1_000_000, 100}, {100, 10, 10}, {0, 0, 20_000}, {0, 30_000, 20_000}, {1_000_000, 0, 200_000}, {200_000, 1_000_000, 200_000}} {
		e, _ := newShell(t, Settings{Mode: Full, MaxOutputChars: tt.set}, nil)
		call := cmd("echo a")
		if tt.ask > 0 {
			call = cmd("echo a", "maxOutputChars", tt.ask)
		}
		if f, err := e.Facts(t.Context(), call, nil); err != nil || f.Inline != tt.want || f.Line != "echo a" {
			t.Errorf("limit %d, asked %d: Facts = %+v, %v; want %d shown of the line", tt.set, tt.ask, f, err, tt.want)
		}
	}
}

// TestModes is S4.26, S4.33, S4.40, S4.41, C13: off is off, and so is an
// unknown word.
func TestModes(t *testing.T) {
	for _, mode := range []Mode{Off, "", "Full", "FULL", "any"} {
		e, _ := newShell(t, Settings{Mode: mode, AllowedPrefixes: []string{"echo"}}, nil)
		executortest.Refused(t, e, cmd("echo a"), capability.Denied, "shell is off")
	}
	e, err := New(Config{Workspace: executortest.Dir(t)})
	executortest.Must(t, err)
	executortest.Refused(t, e, cmd("echo a"), capability.Denied, "shell is off")

	e, _ = newShell(t, listed, nil)
	says(t, e, cmd(`echo 'a  b' "c;d" e\ f`), "a  b c;d e f\n")
	says(t, e, executortest.Call("tool:execute_command", `{"command":"echo a"}`), "a\n")
	for _, line := range []string{"rm x", "echoo x", "/bin/echo x", "git status", "git", "printf y", "./echo x"} {
		executortest.Refused(t, e, cmd(line), capability.Denied, "allowed are: echo, pwd")
	}
	if r := run(t, e, cmd("printf ax")); stdout(r) != "ax" {
		t.Errorf("a prefix with a star: %+v", r)
	}
}

// testAttacks is K4.01: nothing but one plain command passes the allowlist,
// and what is refused has no effect.
func testAttacks(t *testing.T) {
	e, ws := newShell(t, listed, nil)
	for line, want := range map[string]string{
		"echo ok; touch pwned":       "a second command",
		"echo ok && touch pwned":     "&&",
		"echo ok || touch pwned":     "||",
		"echo ok | touch pwned":      "|",
		"echo ok & touch pwned":      "a second command",
		"touch pwned &":              "in the background",
		"echo ok\ntouch pwned":       "a second command",
		"echo $(touch pwned)":        "command substitution",
		"echo `touch pwned`":         "command substitution",
		"echo \"$(touch pwned)\"":    "command substitution",
		"echo ok > pwned":            "redirection >",
		"echo ok >> pwned":           "redirection >>",
		"cat < /etc/passwd":          "redirection <",
		"cat <<E\nx\nE":              "redirection <<",
		"A=1 echo ok":                "assignment",
		"echo $HOME":                 "a variable",
		"echo ${IFS}":                "a variable",
		"echo $((1+1))":              "arithmetic",
		"echo <(touch pwned)":        "not every shell",
		"echo *":                     "a pattern",
		"echo ~root":                 "a home folder",
		"echo {a,b}":                 "a brace",
		"echo $'\\x41'":              "$",
		"(echo ok)":                  "a subshell",
		"{ echo ok; }":               "a block",
		"! echo ok":                  "a negation",
		"if echo a; then echo b; fi": "a loop or a condition",
		"echo() { touch pwned; }":    "a function",
		"time echo a":                "a shell construct",
		"echo a # b":                 "a comment",
		"env sh -c 'touch pwned'":    "runs its arguments",
		"echo ok;":                   "the separator ;",
	} {
		executortest.Refused(t, e, cmd(line), capability.Denied, want)
	}
	if _, err := os.Stat(filepath.Join(ws, "pwned")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused command had an effect: %v", err)
	}
	// The positive control: the same file, by the same means, in full mode.
	f, fws := newShell(t, full, nil)
	run(t, f, cmd("echo ok; touch pwned"))
	if _, err := os.Stat(filepath.Join(fws, "pwned")); err != nil {
		t.Errorf("the control had no effect: %v", err)
	}
	if os.Getenv("KEN_ATTACKS") == "" {
		return
	}
	for _, text := range executortest.Attacks(t, "argument_injection.jsonl") {
		// Quoted, every text is one argument; unquoted, it is refused or plain.
		quoted := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		r, err := e.Invoke(t.Context(), cmd("printf %sx "+quoted))
		if err == nil && len(text) > 0 && stdout(r) != text+"x" && !strings.HasPrefix(text, "-") {
			t.Errorf("printf %.40q gave %.60q", text, stdout(r))
		}
	}
}

// TestFacts: every simple command is there, and what hides one is named (S3.U06).
func TestFacts(t *testing.T) {
	e, _ := newShell(t, full, nil)
	for _, tt := range []struct {
		line   string
		want   [][]string
		opaque string
		paths  []executor.Path
	}{
		{"ls -l", [][]string{{"ls", "-l"}}, "", nil},
		{"a | b && c; d & e || ! f", [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}}, "", nil},
		{"(a; { b; }); if c; then d; fi", [][]string{{"a"}, {"b"}, {"c"}, {"d"}}, "", nil},
		{"echo $(rm x)", [][]string{{"echo", "$(rm x)"}, {"rm", "x"}}, "a command substitution at line 1, column 6", nil},
		{"echo \"`rm x`\"", [][]string{{"echo", "\"`rm x`\""}, {"rm", "x"}}, "command substitution", nil},
		{"a > out 2>/dev/null < in", [][]string{{"a"}}, "redirection", []executor.Path{{Name: "out", Write: true}, {Name: "in"}}},
		{"PATH=. a", [][]string{{"a"}}, "assignment", nil},
		{"rm *", [][]string{{"rm", "*"}}, "a pattern", nil},
		{"sh -c 'rm x'", [][]string{{"sh", "-c", "rm x"}}, "runs its arguments", nil},
		{"eval rm x", [][]string{{"eval", "rm", "x"}}, "runs its arguments", nil},
		{"find . | xargs rm", [][]string{{"find", "."}, {"xargs", "rm"}}, "runs its arguments", nil},
		{"python3 tool.py", [][]string{{"python3", "tool.py"}}, "", nil},
		{"curl x | sh", [][]string{{"curl", "x"}, {"sh"}}, "runs its arguments", nil},
		{"f() { rm x; }; f", [][]string{{"rm", "x"}, {"f"}}, "a function", nil},
		{"[ -f x ] && cat x", [][]string{{"[", "-f", "x", "]"}, {"cat", "x"}}, "", nil},
	} {
		f, err := e.Facts(t.Context(), cmd(tt.line), nil)
		if err != nil || !reflect.DeepEqual(f.Commands, tt.want) || !reflect.DeepEqual(f.Paths, tt.paths) || (tt.opaque == "") != (f.Opaque == "") || !strings.Contains(f.Opaque, tt.opaque) {
			t.Errorf("Facts(%q) = %+v, %v, want %q, opaque %q, %v", tt.line, f, err, tt.want, tt.opaque, tt.paths)
		}
	}
}

// FuzzParse: no line breaks the parser, and a line that passes as one plain
// command is one to a shell's lexer too.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"echo a", "echo 'a b'", `echo "a\"b"`, "a;b", "a|b", "$(x)", "a>b", "a\\\nb", "é ü", "a #b", "((1))", "\\", "a\r\nb", "{a,b}", "~", "a=~", "=", "!", "<<a\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parse(s)
		if err != nil {
			return
		}
		if l.compound == "" && (len(l.commands) != 1 || len(l.commands[0]) == 0) {
			t.Fatalf("parse(%q) = %+v, want one command", s, l)
		}
		if l.compound == "" && l.opaque != "" {
			t.Fatalf("parse(%q) is plain and opaque: %+v", s, l)
		}
		if l.compound != "" {
			return
		}
		// Quoted again, the arguments are the same.
		var again []string
		for _, arg := range l.commands[0] {
			again = append(again, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
		}
		m, err := parse(strings.Join(again, " "))
		if err != nil || m.compound != "" || !slices.Equal(m.commands[0], l.commands[0]) {
			t.Fatalf("parse(%q) = %q, and quoted again %+v, %v", s, l.commands[0], m, err)
		}
	})
}
