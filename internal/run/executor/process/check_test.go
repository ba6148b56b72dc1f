package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// TestCheck: a program that would not be started is known beforehand, in the
// words in which it would fail; and looking makes no folder.
func TestCheck(t *testing.T) {
	refuse := false
	b := newBench(t, func(c *Config) {
		c.Grant = func(_ context.Context, call capability.Call, _ *capability.Capability) (Grant, error) {
			if !refuse {
				return Grant{}, nil
			}
			return Grant{}, &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "workspace", Err: errors.New("no")}
		}
	})
	call := executortest.Call("command:show/do", `{"args":["a"]}`)
	executortest.Unhindered(t, b, call)
	dir := filepath.Join(b.dir, "extensions", "tools.show")
	if _, err := os.Lstat(dir); err == nil {
		t.Error("a check made the work directory")
	}
	refuse = true
	executortest.Doomed(t, b, call, "workspace")
	refuse = false
	executortest.Must(t, os.Mkdir(dir, 0o700))
	if err := os.Symlink(b.dir, filepath.Join(dir, "work")); err != nil {
		t.Skip("cannot here: make a link: ", err)
	}
	executortest.Doomed(t, b, call, "extensions/tools.show/work")
	executortest.Must(t, os.Remove(filepath.Join(dir, "work")))
	b.invoke(t, call)
	executortest.Unhindered(t, b, call)
	// A program that is not installed is known even before the rules are asked.
	b.add("tools.none", "do", &capability.Recipe{Runner: "exec.no-such-program", Action: "do"}, argsSchema)
	executortest.Refused(t, b, executortest.Call("command:none/do", `{"args":["a"]}`), capability.Unavailable, "program no-such-program is not installed")
}
