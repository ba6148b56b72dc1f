// Package executortest holds what the tests of all executors share. It is for
// tests only.
package executortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/testkit"
)

// Nine are the points of the seed's checklist for a new executor (S5.54), in
// its order.
type Nine struct {
	ValidateInputs   func(t *testing.T)
	WorkDirBounds    func(t *testing.T)
	EnvFilter        func(t *testing.T)
	Timeout          func(t *testing.T)
	OutputLimit      func(t *testing.T)
	Log              func(t *testing.T)
	SecureErrors     func(t *testing.T)
	MaliciousInputs  func(t *testing.T)
	PermissionReview func(t *testing.T)
}

// Run runs all nine; a missing one fails.
func (n Nine) Run(t *testing.T) {
	for i, point := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"validate inputs", n.ValidateInputs}, {"work-dir bounds", n.WorkDirBounds}, {"env filter", n.EnvFilter},
		{"timeout", n.Timeout}, {"output limit", n.OutputLimit}, {"log", n.Log},
		{"secure errors", n.SecureErrors}, {"malicious inputs", n.MaliciousInputs}, {"permission review", n.PermissionReview},
	} {
		t.Run(fmt.Sprintf("%d %s", i+1, point.name), func(t *testing.T) {
			if point.test == nil {
				t.Fatal("this point of the checklist has no test")
			}
			point.test(t)
		})
	}
}

// None is a point that an executor has nothing to show for, and why.
func None(why string) func(t *testing.T) { return func(t *testing.T) { t.Log(why) } }

// unprivileged is the user id under which AsNobody runs the tests.
const unprivileged = 65534

// AsNobody runs a package's tests again as an ordinary user if root runs them; at
// least least of them must pass.
func AsNobody(t *testing.T, least int) {
	if os.Getuid() != 0 {
		t.Skip("cannot here: not root, the tests run as an ordinary user as it is")
	}
	testkit.Nightly(t, "the whole package again")
	dir, err := os.MkdirTemp("", "executor-user-") // t.TempDir lies below a closed directory
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, unprivileged, unprivileged); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("cannot here: this system does not show the running program: " + err.Error())
	}
	binary := filepath.Join(dir, "executor.test")
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.v", "-test.timeout="+(4*testkit.Patience).String(), fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin", "HOME=" + dir, "GORACE=" + os.Getenv("GORACE")}
	if err := become(cmd, unprivileged); err != nil {
		t.Skip("cannot here: " + err.Error())
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the tests as uid %d: %v\n%s", unprivileged, err, out)
	}
	if n := bytes.Count(out, []byte("--- PASS")); n < least {
		t.Errorf("the tests as uid %d: %d passed, want at least %d\n%s", unprivileged, n, least, out)
	}
}

// Confined skips a test where nothing can be confined.
func Confined(t *testing.T) {
	t.Helper()
	if p := sandbox.Probe(context.Background()).Isolation.Profile; p == sandbox.None {
		t.Skip("cannot here: nothing can be confined")
	}
}

// Call makes a call of a person's.
func Call(target string, arguments any) capability.Call {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // the test is wrong
	}
	if text, ok := arguments.(string); ok {
		raw = []byte(text)
	}
	return capability.Call{Target: capability.ID(target), Arguments: raw, Principal: capability.Principal{ID: "ada"}, Origin: capability.ByPerson}
}

// Text returns the text of a result's parts of a MIME type; "" means of all.
func Text(r capability.Result, mime string) string {
	var b strings.Builder
	for _, p := range r.Parts {
		if mime == "" || p.MIME == mime {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Refused calls both ways, and wants the same refusal of each.
func Refused(t *testing.T, e executor.Executor, call capability.Call, kind capability.ErrorKind, want string) {
	t.Helper()
	_, err := e.Facts(t.Context(), call, nil)
	if capability.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Facts(%s) = %v, want %v with %q", call.Arguments, err, kind, want)
	}
	r, err := e.Invoke(t.Context(), call)
	if capability.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Invoke(%s) = %+v, %v, want %v with %q", call.Arguments, r, err, kind, want)
	}
}

// Fails makes a call that must end with an error of a kind.
func Fails(t *testing.T, e executor.Executor, call capability.Call, kind capability.ErrorKind) {
	t.Helper()
	if r, err := e.Invoke(t.Context(), call); capability.KindOf(err) != kind || err == nil {
		t.Errorf("Invoke(%s %.60s) = %+v, %v, want %v", call.Target, call.Arguments, r, err, kind)
	}
}

// Doomed checks that Facts accepts a call and that Check refuses it exactly as
// Invoke then does: with an error, or with a failed result that contains want.
func Doomed(t *testing.T, e executor.Executor, call capability.Call, want string) {
	t.Helper()
	if _, err := e.Facts(t.Context(), call, nil); err != nil {
		t.Errorf("Facts(%s) = %v, want that only a check can tell", call.Arguments, err)
	}
	told, err := e.(executor.Checker).Check(t.Context(), call)
	if text := fmt.Sprint(Text(told, ""), err); !told.Failed && err == nil || !strings.Contains(text, want) {
		t.Errorf("Check(%s) = %+v, %v, want a refusal with %q", call.Arguments, told, err, want)
	}
	done, failed := e.Invoke(t.Context(), call)
	if !reflect.DeepEqual(told, done) || !reflect.DeepEqual(err, failed) {
		t.Errorf("Check(%s) = %+v, %v, and Invoke = %+v, %v; want the same", call.Arguments, told, err, done, failed)
	}
}

// Unhindered wants Check to have nothing against a call.
func Unhindered(t *testing.T, e executor.Executor, call capability.Call) {
	t.Helper()
	if told, err := e.(executor.Checker).Check(t.Context(), call); told.Failed || err != nil {
		t.Errorf("Check(%s) = %+v, %v, want nothing against it", call.Arguments, told, err)
	}
}

// Must ends the test at the first error.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// File wants a file to hold a text.
func File(t testing.TB, name, want string) {
	t.Helper()
	if data, err := os.ReadFile(name); err != nil || string(data) != want {
		t.Errorf("%s is %.80q, %v, want %.80q", filepath.Base(name), data, err, want)
	}
}

// Nap is a number of seconds unlike those of other runs, for processes that are
// looked for by [Running]: a test may run twice at once on a machine.
func Nap(seconds int) string { return fmt.Sprintf("%d.%07d", seconds, os.Getpid()) }

// Running reports whether a process with a word in its command line lives.
func Running(t *testing.T, word string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Skip("cannot here: this system does not show its processes")
	}
	for _, name := range lines {
		if data, err := os.ReadFile(name); err == nil && bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return false
}

// Attacks returns the texts of a file of attacks, or skips the test.
func Attacks(t *testing.T, name string) []string {
	t.Helper()
	dir := os.Getenv("KEN_ATTACKS")
	if dir == "" {
		t.Skip("KEN_ATTACKS is not set: the folder of attacks")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range bytes.Lines(data) {
		var row struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row.Text)
	}
	return out
}

// Dir makes a folder that every user can pass through, as the folders of
// programs are; t.TempDir lies below one that is closed.
func Dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "executor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
