package shell

import (
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// TestCheck: a line that cannot start is known beforehand, in the words in which
// it would fail. Nothing starts, and no variable is read.
func TestCheck(t *testing.T) {
	s := Settings{Mode: Allowlist, AllowedPrefixes: []string{"echo", "no-such-program", "cd", "touch"}}
	e, ws := newShell(t, s, func(c *Config) {
		c.Env = []string{"LANG"}
		c.Getenv = func(string) (string, bool) { return "C", true }
	})
	if err := os.Symlink("sub dir", filepath.Join(ws, "link")); err != nil {
		t.Skip("cannot here: make a link: ", err)
	}
	for name, tt := range map[string]struct {
		call capability.Call
		want string
	}{
		"no program":       {cmd("no-such-program x"), "program no-such-program is not installed"},
		"part of a shell":  {cmd("cd sub"), "is a shell built-in"},
		"no folder":        {cmd("echo x", "cwd", "none"), "cwd is not a folder that can be opened"},
		"a link to folder": {cmd("echo x", "cwd", "link"), "does not follow links"},
	} {
		t.Run(name, func(t *testing.T) { executortest.Doomed(t, e, tt.call, tt.want) })
	}
	executortest.Unhindered(t, e, cmd("touch made", "cwd", "sub dir"))
	if _, err := os.Stat(filepath.Join(ws, "sub dir", "made")); err == nil {
		t.Error("a check ran the program")
	}
	executortest.Refused(t, e, cmd("rm made"), capability.Denied, "not on the list") // without a check

	e, _ = newShell(t, full, func(c *Config) {
		c.Env = []string{"SOME_SECRET"}
		c.Getenv = func(name string) (string, bool) { t.Errorf("a check read %s", name); return "", false }
	})
	executortest.Unhindered(t, e, cmd("no-such-program | cat")) // only the shell can tell

	e, _ = newShell(t, full, func(c *Config) {
		c.Guard = func(call capability.Call) error { return denied(call, "workspace", os.ErrInvalid, "elsewhere") }
	})
	executortest.Doomed(t, e, cmd("echo x"), "workspace")
	e, _ = newShell(t, full, func(c *Config) { c.Env = []string{"LD_PRELOAD"} })
	executortest.Doomed(t, e, cmd("echo x"), "LD_PRELOAD")
}
