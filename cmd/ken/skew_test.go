//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// skewVariable says by how many seconds the clock of a [skewedKen] is ahead.
const skewVariable = "KEN_TEST_SKEW"

// The release number of a skewedKen.
const skewedVersion = "9.9.9"

// skewedKen builds the program with a clock that can be wrong, and as its next version,
// whose tables have one more column.
// Its time.Now, in all of its packages and those of Go, is ahead by the seconds that the
// environment names. Durations stay right, as on a machine whose clock is wrong. The
// program's own source is not changed: the go command is given another file for that of
// package time.
func skewedKen(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(text), "func Now() Time {\n")
	const reading = "sec, nsec, mono := runtimeNow()\n"
	if !ok || !strings.Contains(after, reading) {
		t.Fatal("time.Now of this Go is not as this test expects it: look at its source and adapt the test")
	}
	dir := t.TempDir()
	files := map[string]string{
		"time.go": before + "func Now() Time {\n" + strings.Replace(after, reading, reading+"\tsec += testSkew\n", 1),
		"skew.go": `package time

import "syscall"

var testSkew = func() (n int64) {
	text, _ := syscall.Getenv("` + skewVariable + `")
	sign := int64(1)
	for _, c := range text {
		switch {
		case c == '-':
			sign = -1
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		}
	}
	return sign * n
}()
`}
	replace := map[string]string{}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(source, name)] = file
	}
	migrations, err := filepath.Abs(filepath.Join("..", "..", "internal", "store", "migrations", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := filepath.Glob(filepath.Join(migrations, "[0-9][0-9][0-9].sql"))
	if err != nil || len(steps) == 0 {
		t.Fatalf("migrations: %v, %v", steps, err)
	}
	for ending, text := range map[string]string{
		".sql":      fmt.Sprintf("-- oldest: %d\nALTER TABLE ken_item ADD COLUMN note text;\n", len(steps)),
		".back.sql": "ALTER TABLE ken_item DROP COLUMN note;\n",
	} {
		name := fmt.Sprintf("%03d%s", len(steps)+1, ending)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(migrations, name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "ken")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-ldflags", "-X ken/internal/app.releaseVersion="+skewedVersion, "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with another clock: %v\n%s", err, out)
	}
	return binary
}
