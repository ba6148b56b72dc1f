// Package extensions_test runs the example packages as they stand: from the
// line that a person types, through the runner, to the real programs in the
// sandbox.
package extensions_test

import (
	"context"
	"crypto/ed25519"
	"embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/know/source"
	"ken/internal/run/executor"
	"ken/internal/run/executor/process"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
	"ken/internal/talk/slash"
	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

//go:embed */manifest.json */commands/commands.yaml */docs/USAGE.md
var packages embed.FS

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

func TestAsNobody(t *testing.T) { executortest.AsNobody(t, 12) }

// A shelf is what the example packages say. They lie in the binary and do not
// change, so each is read once for all tests.
type shelf struct {
	batch   capability.Batch
	tree    *source.Tree
	details sync.Map // capability.ID to capability.Detail
}

var theShelf = sync.OnceValues(func() (*shelf, error) {
	s := &shelf{tree: source.NewTree(source.TreeConfig{Name: "examples", Files: packages, Trust: capability.TrustUser})}
	var err error
	s.batch, err = s.tree.Load(context.Background())
	return s, err
})

func (s *shelf) lookup(ctx context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
	for _, c := range s.batch.Capabilities {
		if c.ID != id {
			continue
		}
		if d, ok := s.details.Load(id); ok {
			return c, d.(capability.Detail), nil
		}
		d, err := s.tree.Detail(ctx, c)
		if err == nil {
			s.details.Store(id, d)
		}
		return c, d, err
	}
	return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "look up", Target: string(id)}
}

// A bench is everything between a typed line and a program.
type bench struct {
	*shelf
	dir, workspace string
	index          *slash.Index
	executor       *process.Executor
	runner         *runner.Runner
	grant          process.Grant // what every call may have besides
}

// newBench makes a bench for the actions of one extension.
func newBench(t *testing.T, extension string) *bench {
	t.Helper()
	shelf, err := theShelf()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{shelf: shelf}
	b.need(t, extension)
	executortest.Confined(t)
	b.dir = executortest.Dir(t)
	b.workspace = filepath.Join(b.dir, "workspace")
	if err := os.MkdirAll(b.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	b.index = slash.New(slash.Commands(b.batch.Capabilities, nil))
	b.executor, err = process.New(process.Config{
		Extensions: filepath.Join(b.dir, "extensions"), Lookup: b.lookup,
		Grant: func(_ context.Context, _ capability.Call, c *capability.Capability) (process.Grant, error) {
			g := b.grant
			switch c.Run.Workspace { // as its manifest asks, and a person agreed
			case "read":
				g.Dir, g.Read = b.workspace, append([]string{b.workspace}, g.Read...)
			case "write":
				g.Dir, g.Write = b.workspace, []string{b.workspace}
			}
			return g, nil
		},
		Limits: sandbox.Limits{Wall: 60 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.executor.Close() })
	b.startRunner(t)
	return b
}

// need leaves a test for make ci, and skips it where a program is missing.
func (b *bench) need(t *testing.T, extension string) {
	t.Helper()
	for _, c := range b.batch.Capabilities {
		if c.ID != capability.MakeID(capability.KindExtension, extension) {
			continue
		}
		testkit.Programs(t, c.RequiredBins...)
	}
}

func (b *bench) startRunner(t *testing.T) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.NewKey(private)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Config{Dir: filepath.Join(b.dir, "audit"), CheckpointDir: filepath.Join(b.dir, "checkpoints"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	settings := policy.Defaults(policy.Personal)
	settings.Intents = policy.Off
	settings.Rules = []policy.Rule{{ID: "test.commands", Effect: policy.Allow, Capabilities: []string{"command:*"}, Destructive: true, Where: "test:1"}}
	rules, err := policy.Compile(settings)
	if err != nil {
		t.Fatal(err)
	}
	b.runner, err = runner.New(runner.Config{
		Resolve: func(ctx context.Context, call capability.Call) (runner.Resolved, error) {
			c, _, err := b.lookup(ctx, call.Target)
			return runner.Resolved{Capability: c, Schema: func(ctx context.Context) (json.RawMessage, error) {
				_, d, err := b.lookup(ctx, call.Target)
				return d.Schema, err
			}}, err
		},
		Executors: runner.Executors{"exec.*": runner.FromExecutor(b.executor)}, Log: log, Rules: func() *policy.Rules { return rules },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := b.runner.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
		log.Close()
	})
}

// call reads a line as a person types it.
func (b *bench) call(t *testing.T, line string) (capability.Call, error) {
	t.Helper()
	route, err := b.index.Parse(line)
	if err != nil {
		return capability.Call{}, err
	}
	_, d, err := b.lookup(t.Context(), route.Target)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := b.index.Signature(route.Target, func() (json.RawMessage, error) { return d.Schema, nil })
	if err != nil {
		t.Fatal(err)
	}
	call, err := route.Call(sig)
	call.Principal, call.Session = capability.Principal{ID: "ada"}, "s1"
	return call, err
}

// run carries a line out.
func (b *bench) run(t *testing.T, line string) (capability.Result, error) {
	t.Helper()
	call, err := b.call(t, line)
	if err != nil {
		return capability.Result{}, err
	}
	return b.runner.Invoke(t.Context(), call)
}

// work returns a path in the workspace, whose folders it makes.
func (b *bench) work(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(b.workspace, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// write puts files into the workspace.
func (b *bench) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(b.work(t, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// home puts files into an extension's own folder, which its programs have as
// HOME.
func (b *bench) home(t *testing.T, extension string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(b.dir, "extensions", extension, "work")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tool runs a program outside the sandbox, to prepare what a test needs.
func tool(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + executor.DefaultPath, "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// pwned fails when a hostile input had its effect: every one of them tries to
// make a file of this name.
func (b *bench) pwned(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), "pwned") {
			t.Errorf("%s is there", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
