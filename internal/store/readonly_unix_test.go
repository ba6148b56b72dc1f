//go:build unix

package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestSQLiteReadOnly: a user who may not write is told so. Root may always
// write, so another user tries.
func TestSQLiteReadOnly(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ken.db")
	testkit.OK(t, storetest.Open(t, file).Close())
	for _, d := range []string{dir, filepath.Dir(dir)} {
		testkit.OK(t, os.Chmod(d, 0o755))
	}
	try := func(file string) string {
		cmd := child(t, "open", file)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		name      string
		file, dir os.FileMode
		open      string
		want      string // in what it prints
	}{
		{"writable", 0o666, 0o777, file, "<nil>"},
		{"file", 0o444, 0o777, file, store.ErrReadOnly.Error() + " | "},
		{"both", 0o444, 0o555, file, store.ErrReadOnly.Error() + " | "},
		{"secret", 0o000, 0o777, file, store.ErrUnavailable.Error() + " | "},
		{"new", 0o444, 0o555, filepath.Join(dir, "new.db"), store.ErrReadOnly.Error() + " | "},
	} {
		testkit.OK(t, errors.Join(os.Chmod(file, c.file), os.Chmod(dir, c.dir)))
		got := try(c.open)
		if !strings.Contains(got, c.want) || c.want != "<nil>" && !strings.Contains(got, "writ") {
			t.Errorf("%s: %s\nwant %q and the fix", c.name, got, c.want)
		}
	}
	testkit.OK(t, os.Chmod(dir, 0o755))
}
