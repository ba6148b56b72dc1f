package process

import (
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// TestEnvValues: a manifest may set variables, but none that decides which code
// runs, none that has a value already, and no secret.
func TestEnvValues(t *testing.T) {
	executortest.Confined(t)
	b := newBench(t, func(c *Config) {
		c.Getenv = func(name string) (string, bool) { return "value of " + name, true }
	})
	r := &capability.Recipe{Runner: "exec.run", Action: "do", Env: []string{"REGION"}, EnvValues: []string{"TZ=UTC", "LC_ALL=C=x", "EMPTY="}}
	b.add("tools.env", "do", r, argsSchema)
	call := executortest.Call("command:env/do", `{"args":["env"]}`)
	got := strings.Split(stdout(b.invoke(t, call)), "\n")
	for _, want := range []string{"TZ=UTC", "LC_ALL=C=x", "EMPTY=", "REGION=value of REGION"} {
		if !slices.Contains(got, want) {
			t.Errorf("the environment is %q, want %s in it", got, want)
		}
	}
	for _, tt := range []struct{ set, err string }{
		{"LD_PRELOAD=/tmp/x.so", "which code"}, {"BASH_ENV=x", "which code"}, {"GIT_SSH_COMMAND=x", "which code"}, {"KEN_HOME=x", "which code"},
		{"PATH=/tmp", "already has a value"}, {"HOME=/", "already has a value"}, {"PAGER=sh", "already has a value"}, {"REGION=x", "already has a value"},
		{"API_TOKEN=hunter2", "looks like a secret"}, {"=x", "not NAME=value"}, {"X", "not NAME=value"}, {"", "not NAME=value"}, {"X=a\x00B=b", "not NAME=value"},
	} {
		r.EnvValues = []string{tt.set}
		executortest.Refused(t, b, call, capability.Invalid, tt.err)
	}
	r.EnvValues = []string{"TZ=UTC", "TZ=CET"}
	executortest.Refused(t, b, call, capability.Invalid, "TZ already has a value")
}
