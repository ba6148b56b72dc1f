package executors

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/dirs"
	"ken/internal/run/runner"
)

// reached is an executor that says that it was reached.
type reached struct{}

var errReached = errors.New("reached")

func (reached) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, errReached
}

func (reached) Invoke(context.Context, capability.Call) (capability.Result, error) {
	return capability.Result{}, errReached
}

// TestBuiltinOnly: a capability that is not part of Ken is denied, whatever its
// trust.
func TestBuiltinOnly(t *testing.T) {
	for _, trust := range []capability.Trust{capability.TrustWorkspace, capability.TrustUser} {
		_, err := builtinOnly{reached{}}.Facts(t.Context(), capability.Call{Target: "tool:x"}, &capability.Capability{Trust: trust})
		if capability.KindOf(err) != capability.Denied {
			t.Errorf("Facts with the trust %v = %v, want Denied", trust, err)
		}
	}
	_, err := builtinOnly{reached{}}.Facts(t.Context(), capability.Call{Target: "tool:x"}, &capability.Capability{Trust: capability.TrustBuiltin})
	if !errors.Is(err, errReached) {
		t.Errorf("Facts of a tool of Ken = %v, want that of its executor", err)
	}
}

// TestReviewed: neither a check nor an effect reaches the executor if the
// extension is off.
func TestReviewed(t *testing.T) {
	off := errors.New("off")
	closed := reviewed{reached{}, func(context.Context, capability.ID) error { return off }}
	call := capability.Call{Target: "tool:x"}
	if _, err := closed.Check(t.Context(), call); !errors.Is(err, off) {
		t.Errorf("Check = %v, want off", err)
	}
	if _, err := closed.Invoke(t.Context(), call); !errors.Is(err, off) {
		t.Errorf("Invoke = %v, want off", err)
	}
	open := reviewed{reached{}, func(context.Context, capability.ID) error { return nil }}
	if _, err := open.Invoke(t.Context(), call); !errors.Is(err, errReached) {
		t.Errorf("Invoke of one that is on = %v, want that of its executor", err)
	}
}

// TestShellHome: principals, tenants and workspaces have homes of their own.
func TestShellHome(t *testing.T) {
	seen := map[string]bool{}
	for _, work := range []string{t.TempDir(), t.TempDir()} {
		for _, p := range []capability.Principal{{ID: "a"}, {ID: "b"}, {ID: "a", Tenant: "t"}, {ID: "ta"}} {
			seen[shellHome(dirs.Places{Workspace: work, State: "/state"}, p)] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("8 have %d homes", len(seen))
	}
}

// TestProgramPath: the folders of ken.yaml replace those of the user.
func TestProgramPath(t *testing.T) {
	if got := ProgramPath([]string{"/a", "/b"}, "/user"); !reflect.DeepEqual(filepath.SplitList(got), []string{"/a", "/b"}) {
		t.Errorf("ProgramPath = %q", got)
	}
	if got := filepath.SplitList(ProgramPath(nil, "/user")); got[0] != "/user" || len(got) < 2 {
		t.Errorf("ProgramPath without folders = %q, want the user's and the system's", got)
	}
}

// TestUnrunnableRequest: an operation of which no request can be made is
// unavailable before the first call.
func TestUnrunnableRequest(t *testing.T) {
	unrun := Unrunnable(nil, nil)
	with := func(header string) *capability.Capability {
		return &capability.Capability{
			ID: "api:shop/list", Origin: capability.Origin{Format: "openapi"}, Run: &capability.Recipe{Runner: "api.rest", URL: "https://shop.example/list"},
			Meta: map[string]string{"auth": `[{"secret":"SHOP_API_KEY","scheme":"apiKey","in":"header","name":"` + header + `"}]`},
		}
	}
	if got := unrun(with("X-Api-Key")); got != "" {
		t.Errorf("with a usual header = %q, want nothing", got)
	}
	for _, header := range []string{"Host", "content-length", "no header"} {
		if got := unrun(with(header)); !strings.Contains(got, "header that controls how the request is parsed") {
			t.Errorf("with the header %s = %q, want why no request can be made", header, got)
		}
	}
}
