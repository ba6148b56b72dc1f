package shim

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/dirs"
	"ken/internal/testkit"
)

func TestMine(t *testing.T) {
	if !Supported {
		t.Skip("cannot here: there is no daemon on this system")
	}
	for _, tt := range []struct {
		args string
		want bool
	}{
		{"ken mcp", true}, {"ken mcp --config x.yaml", true}, {"ken mcp --config=x.yaml --catalog a --catalog b", true}, {"ken mcp --surface bridge", true}, {"ken mcp --surface=direct", true}, {"ken mcp --surface sideways", false}, {"ken mcp --surface", false}, {"ken mcp --config --help", true},
		{"", false}, {"ken", false}, {"ken serve", false}, {"ken serve mcp", false}, {"ken --config x mcp", false}, {"ken mcpx", false},
		{"ken mcp --standalone", false}, {"ken mcp --config x --standalone", false}, {"ken mcp --help", false}, {"ken mcp -h", false}, {"ken mcp help", false},
		{"ken mcp --config", false}, {"ken mcp --catalog a --config", false}, {"ken mcp -c x", false}, {"ken mcp --json", false}, {"ken mcp x", false}, {"ken mcp --", false}, {"ken mcp --configs x", false},
	} {
		if got := Mine(strings.Fields(tt.args)); got != tt.want {
			t.Errorf("Mine(%s) = %v, want %v", tt.args, got, tt.want)
		}
	}
}

// TestWhereAgrees: the shim and the rest of Ken mean the same folders.
func TestWhereAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"", "/", "/home/u", "/home/u/", "/home/../root/x", "relative", "./r/../q", "~", "~/k", "~u/k", " ", "/a b", "/" + strings.Repeat("deep/", 30)})
		env := map[string]string{}
		for _, name := range []string{"HOME", "USERPROFILE", "KEN_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
			env[name] = path.Draw(t, name)
		}
		cwd := rapid.SampledFrom([]string{"/w", "/w/../v", "/", "w", ""}).Draw(t, "cwd")
		getenv := func(name string) string { return env[name] }
		got, err := Where(getenv, cwd)
		want, werr := dirs.New(getenv, cwd)
		if (err == nil) != (werr == nil) || err != nil && err.Error() != werr.Error() {
			t.Fatalf("Where = %v, New = %v", err, werr)
		}
		if err != nil {
			return
		}
		if got.Home != want.Home || filepath.Dir(got.Log) != want.Logs {
			t.Fatalf("Where has %s and %s, New %s and %s", got.Home, got.Log, want.Home, want.Logs)
		}
		if len(got.Socket) > maxPath || !filepath.IsAbs(got.Socket) {
			t.Fatalf("Where(%v).Socket = %s, of %d bytes", env, got.Socket, len(got.Socket))
		}
		if usual := filepath.Join(want.Home, "ken.sock"); len(usual) <= maxPath && got.Socket != usual {
			t.Fatalf("Where(%v).Socket = %s, want %s", env, got.Socket, usual)
		}
	})
}

func TestLongHome(t *testing.T) {
	long := "/h/" + strings.Repeat("x", 200)
	where := func(home, runtimeDir string) Place {
		p, err := Where(func(name string) string {
			return map[string]string{"KEN_HOME": home, "XDG_RUNTIME_DIR": runtimeDir}[name]
		}, "/")
		testkit.OK(t, err)
		return p
	}
	a, b := where(long, "/run/user/7"), where(long+"y", "/run/user/7")
	if !strings.HasPrefix(a.Socket, "/run/user/7/ken/") || !a.Private || a.Socket == b.Socket || a != where(long, "/run/user/7") {
		t.Errorf("the sockets of long homes are %v and %v, want two private ones below the runtime folder, always the same", a, b)
	}
	for _, dir := range []string{"", "relative", long} {
		if p := where(long, dir); !strings.HasPrefix(p.Socket, "/tmp/ken-") || !p.Private || len(p.Socket) > maxPath {
			t.Errorf("with the runtime folder %q the socket is %v, want one below /tmp", dir, p)
		}
	}
}

func TestForwarded(t *testing.T) {
	env, lost := forwarded([]string{"HOME=/h", "PATH=/bin", "KEN_HOME=/k", "KEN_X=a=b", "XDG_DATA_HOME=", "XDG_BAD=\xff", "SECRET=s", "HOMEX=1", "KEN=1", "=C:=x", "broken"})
	want := map[string]string{"HOME": "/h", "PATH": "/bin", "KEN_HOME": "/k", "KEN_X": "a=b", "XDG_DATA_HOME": ""}
	if len(env) != len(want) {
		t.Errorf("forwarded = %v, want %v", env, want)
	}
	for name, value := range want {
		if got, ok := env[name]; !ok || got != value {
			t.Errorf("forwarded[%s] = %q, %v; want %q", name, got, ok, value)
		}
	}
	if len(lost) != 1 || lost[0] != "XDG_BAD" {
		t.Errorf("lost = %v, want XDG_BAD", lost)
	}
}

func TestHelloRefuses(t *testing.T) {
	if _, _, err := newHello("/w\xff", nil, nil); err == nil || !strings.Contains(err.Error(), "--standalone") {
		t.Errorf("a folder that is not UTF-8 = %v, want a refusal", err)
	}
	if _, _, err := newHello("/w", nil, []string{"PATH=" + strings.Repeat("x", MaxHello)}); err == nil || !strings.Contains(err.Error(), "PATH") {
		t.Errorf("a huge PATH = %v, want a refusal", err)
	}
	line, _, err := newHello("/w\n", []string{"--config", "a\nb"}, []string{"KEN_A=<&>\u2028"})
	if err != nil || strings.Count(string(line), "\n") != 1 || !strings.HasSuffix(string(line), "\n") {
		t.Errorf("newHello = %q, %v; want one line", line, err)
	}
}

func FuzzNote(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00Go\x00\x00abc"))
	f.Add([]byte("\x04\x00\x00\x00\xff\xff\xff\xff\x04\x00\x00\x00Go\x00\x00abc"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if id := note(head); len(id) > 256 || !strings.Contains(string(head), id) {
			t.Errorf("note(%q) = %q", head, id)
		}
	})
}
