package runner

import (
	"context"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// plain is an executor whose facts are plain words.
type plain struct {
	capability.InvokerFunc
	facts executor.Facts
}

func (p plain) Facts(context.Context, capability.Call, *capability.Capability) (executor.Facts, error) {
	return p.facts, nil
}

// TestFromExecutor: nothing of what an executor says is lost on its way to the
// rules, and an unknown permission is kept.
func TestFromExecutor(t *testing.T) {
	x := FromExecutor(plain{echo, executor.Facts{
		Paths: []executor.Path{{Name: "a", Write: true}, {Name: "b"}}, Commands: [][]string{{"/usr/bin/git", "log"}},
		Hosts: []string{"example.com"}, Destructive: true, Required: []string{"exec", "levitate"},
	}})
	got, err := x.Facts(t.Context(), callOf("look", `{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Facts{
		Paths: []policy.Path{{Name: "a", Write: true}, {Name: "b"}}, Commands: [][]string{{"/usr/bin/git", "log"}},
		Hosts: []string{"example.com"}, Destructive: true,
	}
	if diff := cmp.Diff(want, got.Arguments, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Facts() (-want +got):\n%s", diff)
	}
	if !got.Required.Has(policy.PermExec) || got.Required.Unknown() != "levitate" {
		t.Errorf("Required = %v, unknown %q; want exec and levitate", got.Required, got.Required.Unknown())
	}
	if got.Tool != "git" || strings.Join(got.Argv, " ") != "/usr/bin/git log" || !got.Keep {
		t.Errorf("Facts() = %+v, want the command", got)
	}
	several := Facts{Arguments: policy.Facts{Commands: [][]string{{"ls"}, {"curl", "--token", "hunter2"}}, Opaque: "a redirection"}}
	if line := commandLine(nil, several); !strings.HasPrefix(line, "ls ; curl") || strings.Contains(line, "hunter2") || !strings.Contains(line, "redirection") {
		t.Errorf("commandLine() = %s, want both commands, redacted, and that there is more", line)
	}
}
