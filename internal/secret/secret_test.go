package secret

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit"
)

const token = "ghp_0123456789abcdef"

func stored(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ken")
	return New(Config{Dir: dir}), dir
}

func set(t *testing.T, s *Store, name, value string) {
	t.Helper()
	testkit.OK(t, s.Set(name, Of(value)))
}

func reveal(t *testing.T, s *Store, name string) string {
	t.Helper()
	v := testkit.Must(s.Lookup(name))(t)
	return v.Reveal()
}

func TestSetListRemove(t *testing.T) {
	s, dir := stored(t)
	if items, err := s.List(); err != nil || items != nil {
		t.Errorf("List of nothing = %v, %v", items, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading made the folder")
	}
	set(t, s, "GITHUB_TOKEN", token)
	set(t, s, "PIN", "1234")
	set(t, s, "GITHUB_TOKEN", token+"2")
	if got := reveal(t, s, "GITHUB_TOKEN"); got != token+"2" {
		t.Errorf("Lookup = %q", got)
	}
	other := New(Config{Dir: dir, Environ: []string{"PIN=999999"}}) // as after a restart
	items, err := other.List()
	if err != nil || len(items) != 2 || items[0].Name != "GITHUB_TOKEN" || items[0].Unguarded != "" || items[0].Shadowed {
		t.Errorf("List = %+v, %v", items, err)
	}
	if pin := items[1]; !pin.Shadowed || !strings.Contains(pin.Unguarded, "shorter than 6") || pin.Set.IsZero() {
		t.Errorf("PIN = %+v, want it shadowed and unguarded", pin)
	}
	if got := reveal(t, other, "PIN"); got != "999999" {
		t.Errorf("Lookup(PIN) = %q, want that of the environment", got)
	}
	testkit.OK(t, other.Remove("GITHUB_TOKEN"))
	if _, err := s.Lookup("GITHUB_TOKEN"); capability.KindOf(err) != capability.NotFound || !strings.Contains(err.Error(), "ken secret set GITHUB_TOKEN") {
		t.Errorf("Lookup of what another removed = %v, want not found with the fix", err)
	}
	if s.Has("GITHUB_TOKEN") || !s.Has("PIN") {
		t.Error("Has is wrong about one of them")
	}
	if err := s.Remove("GITHUB_TOKEN"); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Remove again = %v", err)
	}
}

func TestFilesAreClosedAndSealed(t *testing.T) {
	s, dir := stored(t)
	set(t, s, "GITHUB_TOKEN", token)
	entries := testkit.Must(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		info, _ := e.Info()
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
		data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		if bytes.Contains(data, []byte(token)) || bytes.Contains(data, []byte("GITHUB")) {
			t.Errorf("%s shows the secret or its name", e.Name())
		}
	}
	if runtime.GOOS == "windows" {
		names = append(names, lockFile) // it is there only while somebody writes
	}
	if diff := cmp.Diff([]string{storeFile, keyFile, lockFile}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	// It is an age file that the key opens, with any age.
	key, _ := os.ReadFile(filepath.Join(dir, keyFile))
	ids := testkit.Must(age.ParseIdentities(bytes.NewReader(key)))(t)
	sealed, _ := os.ReadFile(filepath.Join(dir, storeFile))
	if _, err := age.Decrypt(bytes.NewReader(sealed), ids...); err != nil {
		t.Errorf("age.Decrypt: %v", err)
	}
}

// TestValuesNeverPrint: every way that a Go program has to write a value.
func TestValuesNeverPrint(t *testing.T) {
	v := Of(token)
	type carrier struct {
		Public  Value
		private Value
		Pointer *Value
		Any     any
		List    []Value
		Map     map[string]Value
	}
	c := carrier{v, v, &v, v, []Value{v}, map[string]Value{"x": v}}
	var written bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T", "%c", "%U", "%e", "%10.3s"} {
		for _, value := range []any{v, &v, c, &c, []any{v}} {
			fmt.Fprintf(&written, verb+"\n", value)
		}
	}
	fmt.Fprintln(&written, v, c, errors.New(fmt.Sprint(v)))
	for _, log := range []*slog.Logger{slog.New(slog.NewJSONHandler(&written, nil)), slog.New(slog.NewTextHandler(&written, nil))} {
		log.Info("x", "v", v, "c", c, "p", &v)
		log.With("v", v).WithGroup("g").Info("y", slog.Any("v", []Value{v}))
	}
	json.NewEncoder(&written).Encode(c)
	xml.NewEncoder(&written).Encode(struct{ V Value }{v})
	gob.NewEncoder(&written).Encode(struct{ V Value }{v})
	if strings.Contains(written.String(), token) || strings.Contains(written.String(), token[4:]) ||
		strings.Contains(strings.ToLower(written.String()), fmt.Sprintf("%x", token[4:])) {
		t.Errorf("the secret was written:\n%s", written.String())
	}
	if !strings.Contains(written.String(), hidden) || v.Reveal() != token {
		t.Error("nothing was written, so nothing was shown")
	}
}

func TestResolve(t *testing.T) {
	s, dir := stored(t)
	set(t, s, "STORED", "from the file of secrets")
	set(t, s, "BOTH", "from the file of secrets")
	file := filepath.Join(dir, "plain")
	os.WriteFile(file, []byte("from a file\r\n"), 0o600)
	s = New(Config{Dir: dir, Environ: []string{"BOTH=from the environment", "ONLY_ENV=from the environment too", "HOME=" + dir, "EMPTY="}})
	for ref, want := range map[string]string{
		"secret:STORED": "from the file of secrets", "${secret:STORED}": "from the file of secrets",
		"secret:BOTH": "from the environment", "secret:ONLY_ENV": "from the environment too", "env:ONLY_ENV": "from the environment too",
		"${env:BOTH}": "from the environment", "file:" + file: "from a file", "file:~/plain": "from a file", "${file:" + file + "}": "from a file",
	} {
		if v, err := s.Resolve(ref); err != nil || v.Reveal() != want {
			t.Errorf("Resolve(%q) = %q, %v, want %q", ref, v.Reveal(), err, want)
		}
	}
	for ref, kind := range map[string]capability.ErrorKind{
		"env:STORED": capability.NotFound, "env:EMPTY": capability.NotFound, "secret:NONE": capability.NotFound,
		"file:" + file + "x": capability.NotFound, "file:plain": capability.Invalid, "file:" + dir: capability.Invalid,
		token: capability.Invalid, "": capability.Invalid, "${secret:STORED": capability.Invalid, "vault:x": capability.Invalid,
		"secret:a b": capability.Invalid, "secret:../x": capability.Invalid, "env:": capability.Invalid,
	} {
		v, err := s.Resolve(ref)
		if e, ok := errors.AsType[*capability.Error](err); !ok || e.Kind != kind || e.Fix == "" || !v.Empty() {
			t.Errorf("Resolve(%q) = %v, want %v and a fix", ref, err, kind)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("Resolve repeats what may be a secret: %v", err)
		}
	}
	if !IsReference("${env:X}") || IsReference("https://x") || IsReference("env") {
		t.Error("IsReference is wrong")
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "", "secret:A": "A", "${secret:A}": "A", "env:A": "", "Bearer ${secret:A}": "A", "${secret:A}:${env:B}:${secret:C}": "A C",
		"$${secret:A}": "", "${secret:A": "", "${x ${secret:A}": "A",
	} {
		if got := strings.Join(Names(text), " "); got != want {
			t.Errorf("Names(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	s := New(Config{Environ: []string{"A=alpha-alpha", "B=${env:A}"}})
	for text, want := range map[string]string{
		"Bearer ${env:A}": "Bearer alpha-alpha", "${env:A}/${secret:A}": "alpha-alpha/alpha-alpha", "plain": "plain", "": "",
		"${env:B}": "${env:A}", "$${env:A} $5 {x}": "${env:A} $5 {x}", "$${a}${env:A}": "${a}alpha-alpha",
	} {
		if v, err := s.Expand(text); err != nil || v.Reveal() != want {
			t.Errorf("Expand(%q) = %q, %v, want %q", text, v.Reveal(), err, want)
		}
	}
	for _, text := range []string{"x ${env:NONE}", "${env:A", "${A}", "${}"} {
		if v, err := s.Expand(text); err == nil || !v.Empty() {
			t.Errorf("Expand(%q) = %q, want an error", text, v.Reveal())
		}
	}
	if !slices.Contains(values(s), "Bearer alpha-alpha") {
		t.Errorf("Values = %q, want what was put together too", values(s))
	}
}

func values(s *Store) []string {
	var out []string
	for _, v := range s.Values() {
		out = append(out, v.Reveal())
	}
	return out
}

// TestValueWithTwoNames: whoever is given a value under one of its names has it.
func TestValueWithTwoNames(t *testing.T) {
	s, _ := stored(t)
	set(t, s, "FIRST", token)
	before := s.Changes()
	set(t, s, "SECOND", token)
	var names []string
	for name, v := range s.Values() {
		if v.Reveal() == token {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"FIRST", "SECOND"}, names); diff != "" || s.Changes() <= before {
		t.Errorf("names (-want +got):\n%s; Changes from %d to %d, want more", diff, before, s.Changes())
	}
}

// TestRedactorKnowsEveryValue: of the file, of the environment, of files,
// removed and replaced ones too, and what another process set.
func TestRedactorKnowsEveryValue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ken")
	file := filepath.Join(t.TempDir(), "plain")
	os.WriteFile(file, []byte("value-of-a-file"), 0o600)
	s := New(Config{Dir: dir, Environ: []string{
		"AWS_SECRET_ACCESS_KEY=value-of-a-key", "MY_TOKEN=value-of-a-token", "KEYBOARD=not-a-secret", "PATH=/usr/bin", "OTHER=value-looked-up",
		"SSH_AUTH_SOCK=/run/agent", "DB_PASSWORD=short", "TOKEN_FILE=/etc/token",
	}})
	before := s.Changes()
	for _, ref := range []string{"env:OTHER", "file:" + file} {
		testkit.Must(s.Resolve(ref))(t)
	}
	set(t, s, "X", "value-first")
	set(t, s, "X", "value-second")
	testkit.OK(t, s.Remove("X"))
	set(t, New(Config{Dir: dir}), "Y", "value-by-another-process")
	after := s.Changes()
	got := values(s)
	slices.Sort(got)
	want := []string{"value-by-another-process", "value-first", "value-looked-up", "value-of-a-file", "value-of-a-key", "value-of-a-token", "value-second"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Values (-want +got):\n%s", diff)
	}
	if after <= before || s.Changes() != after {
		t.Errorf("Changes went from %d to %d, then %d", before, after, s.Changes())
	}
	if un := s.Unguarded(); len(un) != 1 || !strings.Contains(un["env:DB_PASSWORD"], "shorter than 6") {
		t.Errorf("Unguarded = %v, want DB_PASSWORD with the reason", un)
	}
	for name := range s.Values() {
		if name == "" {
			t.Error("a value has no name")
		}
		break
	}
}

func TestWrongModesAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("cannot here: files have no modes")
	}
	for _, name := range []string{storeFile, keyFile} {
		s, dir := stored(t)
		set(t, s, "X", token)
		path := filepath.Join(dir, name)
		os.Chmod(path, 0o640)
		for op, err := range map[string]error{"Check": s.Check(), "Set": New(Config{Dir: dir}).Set("Y", Of("another"))} {
			if capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), "chmod 600 "+path) {
				t.Errorf("%s with %s open = %v, want a refusal with the fix", op, name, err)
			}
		}
		os.Chmod(path, 0o600)
		if err := s.Check(); err != nil {
			t.Errorf("after chmod: %v", err)
		}
	}
	s, dir := stored(t)
	os.MkdirAll(dir, 0o700)
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o622: false} {
		path := filepath.Join(dir, fmt.Sprintf("f%o", mode))
		os.WriteFile(path, []byte(token), 0o600)
		os.Chmod(path, mode)
		if _, err := s.Resolve("file:" + path); (err == nil) != want {
			t.Errorf("file with mode %o: %v, want allowed %v", mode, err, want)
		}
	}
}

// TestBrokenStore: each way to be broken is told apart, says how to recover,
// and nothing is overwritten by it.
func TestBrokenStore(t *testing.T) {
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	other := func([]byte) []byte {
		id, _ := age.GenerateX25519Identity()
		return []byte(id.String() + "\n")
	}
	tests := []struct {
		name, file string
		change     func([]byte) []byte // nil removes
		want       string
	}{
		{"damaged", storeFile, flip, "file is damaged"},
		{"cut", storeFile, func(b []byte) []byte { return b[:len(b)-3] }, "file is damaged"},
		{"empty", storeFile, func([]byte) []byte { return nil }, "file is damaged"},
		{"not age", storeFile, func([]byte) []byte { return []byte("{}") }, "file is damaged"},
		{"no key", keyFile, nil, "is missing"},
		{"other key", keyFile, other, "another key"},
		{"broken key", keyFile, func([]byte) []byte { return []byte("AGE-SECRET-KEY-1" + token) }, "no key that can be read"},
		{"huge", storeFile, func([]byte) []byte { return make([]byte, fileLimit+1) }, "larger than"},
	}
	for _, tt := range tests {
		s, dir := stored(t)
		set(t, s, "X", token)
		path := filepath.Join(dir, tt.file)
		data := testkit.Must(os.ReadFile(path))(t)
		if tt.change == nil {
			os.Remove(path)
		} else {
			os.WriteFile(path, tt.change(data), 0o600)
		}
		broken, _ := os.ReadFile(filepath.Join(dir, storeFile))
		fresh := New(Config{Dir: dir})
		for op, err := range map[string]error{
			"Check": fresh.Check(), "Lookup": second(fresh.Lookup("X")), "List": second(fresh.List()), "Set": fresh.Set("Y", Of("another")), "Remove": fresh.Remove("X"),
		} {
			if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "backup") ||
				strings.Contains(err.Error(), token) {
				t.Errorf("%s: %s = %v, want %q and how to recover", tt.name, op, err, tt.want)
			}
		}
		if now, _ := os.ReadFile(filepath.Join(dir, storeFile)); !bytes.Equal(now, broken) {
			t.Errorf("%s: the broken file was overwritten", tt.name)
		}
		if fresh.Has("X") {
			t.Errorf("%s: Has(X) = true", tt.name)
		}
		if _, err := New(Config{Dir: dir, Environ: []string{"X=from-env"}}).Lookup("X"); err != nil {
			t.Errorf("%s: the environment's value needs no file: %v", tt.name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestNewerVersionIsRefused(t *testing.T) {
	s, dir := stored(t)
	set(t, s, "X", token)
	for doc, want := range map[string]string{`{"version":2}`: "version 2", `{"version":1,"secrets":"` + token + `"}`: "not the JSON", token: "not the JSON"} {
		recipient := testkit.Must(s.recipient())(t)
		var sealed bytes.Buffer
		w, _ := age.Encrypt(&sealed, recipient)
		w.Write([]byte(doc))
		w.Close()
		os.WriteFile(filepath.Join(dir, storeFile), sealed.Bytes(), 0o600)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("Check of %s = %v, want %q", doc, err, want)
		}
	}
}

func TestSymlinkIsRefused(t *testing.T) {
	s, dir := stored(t)
	set(t, s, "X", token)
	path := filepath.Join(dir, storeFile)
	os.Rename(path, path+".real")
	if err := os.Symlink(path+".real", path); err != nil {
		t.Skip("cannot here: " + err.Error())
	}
	if err := New(Config{Dir: dir}).Check(); err == nil || !strings.Contains(err.Error(), "not a plain file") {
		t.Errorf("Check of a link = %v, want a refusal", err)
	}
}

func TestBadNamesAndValues(t *testing.T) {
	s, _ := stored(t)
	for _, name := range []string{"", "a b", "1X", "X=Y", "../X", token + "!", strings.Repeat("x", 129), "X\n"} {
		if err := s.Set(name, Of("something")); capability.KindOf(err) != capability.Invalid || name == token+"!" && strings.Contains(err.Error(), token) {
			t.Errorf("Set(%q) = %v, want a refusal that does not repeat it", name, err)
		}
	}
	for _, value := range []string{"", "a\x00b", "\xff", strings.Repeat("x", longest+1)} {
		if err := s.Set("X", Of(value)); capability.KindOf(err) != capability.Invalid {
			t.Errorf("Set of a bad value = %v, want a refusal", err)
		}
		if _, err := ReadValue(strings.NewReader(value)); capability.KindOf(err) != capability.Invalid {
			t.Errorf("ReadValue of a bad value = %v, want a refusal", err)
		}
	}
	if v, err := ReadValue(strings.NewReader("two\nlines\n")); err != nil || v.Reveal() != "two\nlines" {
		t.Errorf("ReadValue = %q, %v", v.Reveal(), err)
	}
	if err := New(Config{}).Set("X", Of("something")); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("Set without a folder = %v", err)
	}
}

// TestProcesses: several processes set secrets at once, from nothing; none is
// lost and there is one key.
func TestProcesses(t *testing.T) {
	const processes, each = 4, 5
	if dir := os.Getenv("KEN_TEST_SECRETS"); dir != "" {
		s := New(Config{Dir: dir})
		for i := range each {
			testkit.OK(t, s.Set(fmt.Sprintf("P%s_%d", os.Getenv("KEN_TEST_PROCESS"), i), Of(token)))
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "ken")
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
			cmd.Env = append(os.Environ(), "KEN_TEST_SECRETS="+dir, fmt.Sprintf("KEN_TEST_PROCESS=%d", i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	items, err := New(Config{Dir: dir}).List()
	if err != nil || len(items) != processes*each {
		t.Errorf("List has %d, %v, want %d", len(items), err, processes*each)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s, _ := stored(t)
	set(t, s, "X", token)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 5 {
				if err := s.Set(fmt.Sprintf("N%d_%d", i, n), Of(token)); err != nil {
					t.Error(err)
				}
				if v, err := s.Resolve("secret:X"); err != nil || v.Reveal() != token {
					t.Errorf("Resolve = %v", err)
				}
				for range s.Values() {
				}
				s.Changes()
				s.Unguarded()
			}
		})
	}
	wg.Wait()
	if items, err := s.List(); err != nil || len(items) != 21 {
		t.Errorf("List has %d, %v, want 21", len(items), err)
	}
}

// TestModel compares the store with a map, across restarts.
func TestModel(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		dir := testkit.Must(os.MkdirTemp(root, "m"))(r)
		s, want := New(Config{Dir: dir}), map[string]string{}
		name := rapid.SampledFrom([]string{"A", "B", "C_D"})
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			n := name.Draw(r, "name")
			switch rapid.IntRange(0, 2).Draw(r, "step") {
			case 0:
				v := rapid.StringMatching(`[ -~\n]{1,20}`).Draw(r, "value")
				testkit.OK(r, s.Set(n, Of(v)))
				want[n] = v
			case 1:
				if err := s.Remove(n); (err == nil) != (want[n] != "") {
					r.Fatalf("Remove(%s) = %v with %q there", n, err, want[n])
				}
				delete(want, n)
			default:
				s = New(Config{Dir: dir})
			}
			for _, n := range []string{"A", "B", "C_D"} {
				if v, err := s.Lookup(n); v.Reveal() != want[n] || (err == nil) != (want[n] != "") {
					r.Fatalf("Lookup(%s) = %q, %v, want %q", n, v.Reveal(), err, want[n])
				}
			}
		}
	})
}

// FuzzExpand: no text makes it panic, read a value's text again, or show a
// secret in an error.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{"Bearer ${secret:A}", "$${env:A}", "${", "${env:A}${", "${file:/etc/passwd}", "$$${env:A}", "}", "${env:}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file:") {
			return
		}
		s := New(Config{Environ: []string{"A=" + token, "B=${env:A}"}})
		v, err := s.Expand(text)
		switch {
		case err != nil && (!v.Empty() || strings.Contains(err.Error(), token)):
			t.Errorf("Expand(%q) = %q, %v", text, v.Reveal(), err)
		case err == nil && !strings.Contains(text, "${") && v.Reveal() != text:
			t.Errorf("Expand(%q) = %q, want it unchanged", text, v.Reveal())
		}
	})
}
