package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// TestPolicyProfiles: a key that no file says is the profile's, and says so
// (S3.40, S3.41).
func TestPolicyProfiles(t *testing.T) {
	for _, name := range []string{"personal", "team", "locked", "seed"} {
		places, _, _ := at(t)
		write(t, filepath.Join(places.Home, "ken.yaml"), "policy:\n  profile: "+name+"\n")
		c, err := Load(places, "")
		if err != nil {
			t.Fatal(err)
		}
		p, _ := policy.ParseProfile(name)
		if want := policy.Defaults(p); !reflect.DeepEqual(c.Policy, want) {
			t.Errorf("%s: Policy = %+v, want %+v", name, c.Policy, want)
		}
		if _, origin, _ := c.Explain("policy.askAbove"); origin != "profile "+name {
			t.Errorf("%s: policy.askAbove has origin %s", name, origin)
		}
	}
	// A said threshold meets the profile's other one.
	places, _, _ := at(t)
	write(t, filepath.Join(places.Home, "ken.yaml"), "policy: {profile: locked, askAbove: 90}\n")
	c, err := Load(places, "")
	if err != nil || c.Policy.AskAbove != 70 || c.Policy.DenyAbove != 70 {
		t.Errorf("Load = ask above %d, deny above %d, %v, want 70 and 70", c.Policy.AskAbove, c.Policy.DenyAbove, err)
	}
	// A project's profile reaches the keys that nobody says.
	write(t, filepath.Join(places.Home, "ken.yaml"), "policy: {denyAbove: 95}\n")
	write(t, filepath.Join(places.Project, "ken.yaml"), "policy: {profile: locked}\n")
	c, err = Load(places, "")
	if err != nil || c.Policy.Profile != policy.Locked || c.Policy.AskAbove != 30 || c.Policy.DenyAbove != 95 || c.Policy.Deployment != policy.LocalLocked {
		t.Errorf("Load = %+v, %v, want locked but for denyAbove", c.Policy, err)
	}
}

// TestPolicyJoined: what a project adds stands beside what the user has.
func TestPolicyJoined(t *testing.T) {
	places, _, _ := at(t)
	own, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	write(t, own, `policy:
  protect: [a]
  permissions: {network: ask, llm: deny}
  modes: {x: {groups: [read]}}
  rules: [{effect: allow, argv: [ls]}]
  toolAccess: {tools: {shell: {mode: full}, read_file: {timeoutMs: 4000}}}
`)
	write(t, project, `policy:
  protect: [b, a]
  permissions: {network: deny, exec: ask}
  modes: {y: {groups: [edit]}}
  rules: [{effect: deny, argv: [rm]}]
  toolAccess: {tools: {write_to_file: {enabled: false}, read_file: {timeoutMs: 9000}}}
`)
	c, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"policy.protect":     "[a, b]",
		"policy.permissions": "{exec: ask, network: deny, llm: deny}",
		"policy.modes":       "{x: {groups: [read]}, y: {groups: [edit]}}",
		"policy.rules":       "[{effect: allow, argv: [ls]}, {effect: deny, argv: [rm]}]",
	} {
		if value, origin, _ := c.Explain(key); value != want || !strings.HasPrefix(origin, own+":") || !strings.Contains(origin, ", "+project+":") {
			t.Errorf("Explain(%s) = %s, %s, want %s of both", key, value, origin, want)
		}
	}
	if ids := []string{c.Policy.Rules[0].ID, c.Policy.Rules[1].ID}; !slices.Equal(ids, []string{"rules[0]", "project.rules[0]"}) {
		t.Errorf("rules are named %q", ids)
	}
	if len(c.Policy.Modes) != 6 {
		t.Errorf("modes = %v, want the built-in four, x and y", c.Policy.Modes)
	}
	a := c.Policy.Access
	if a.Tool("shell").Mode != policy.AccessFull || a.Tool("read_file").Timeout != 4*time.Second || a.Tool("write_to_file").Enabled {
		t.Errorf("Access = %+v, want what both allow", a)
	}
	if _, err := policy.Compile(c.Policy); err != nil {
		t.Errorf("Compile = %v", err)
	}
}

// TestPolicyBesideExperiment: the other half of an experiment is governed as
// this one, for agents too.
func TestPolicyBesideExperiment(t *testing.T) {
	places, _, _ := at(t)
	write(t, filepath.Join(places.Home, "b.yaml"), "policy: {askAbove: 90}\ncapabilities: {maxTokens: 7}\ndiscovery: {agents: {h: {profile: lean}}}\n")
	write(t, filepath.Join(places.Home, "ken.yaml"), "policy: {askAbove: 10}\nlimits: {queue: 9}\nexperiment: {name: x, config: b.yaml}\n")
	c, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	b, ok := c.VariantB()
	b = b.ForAgent("h")
	if !ok || b.Policy.AskAbove != 10 || b.Limits.Queue != 9 || b.Capabilities.MaxTokens != 7 || b.Discovery.Profile != ProfileLean {
		t.Errorf("VariantB = %+v, %v, want its own capabilities and A's policy", b, ok)
	}
}

func TestCedarFiles(t *testing.T) {
	places, _, work := at(t)
	write(t, filepath.Join(places.Home, "ken.yaml"), "policy:\n  cedar: [gone.cedar, big.cedar]\n")
	write(t, filepath.Join(places.Home, "big.cedar"), strings.Repeat("x", fileLimit+1))
	_, err := Load(places, "")
	for _, want := range []string{
		"gone.cedar: the file is not there, and policy.cedar names it (" + filepath.Join(places.Home, "ken.yaml") + ":2)", "big.cedar: larger than",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load = %v, want %q", err, want)
		}
	}
	// A relative name counts from the file.
	write(t, filepath.Join(work, "sub/k.yaml"), "policy: {cedar: [../x.cedar]}\n")
	write(t, filepath.Join(work, "x.cedar"), "permit (principal, action, resource);")
	c, err := Load(places, "sub/k.yaml")
	if err != nil || len(c.Policy.Cedar) != 1 || c.Policy.Cedar[0].Name != filepath.Join(work, "x.cedar") || len(c.Policy.Cedar[0].Text) == 0 {
		t.Errorf("Load = %+v, %v, want x.cedar with its text", c.Policy.Cedar, err)
	}
}

// TestS420ToolAccessFiles: context/tool-access.json counts, the user's as the
// user's word and the workspace's to narrow it.
func TestS420ToolAccessFiles(t *testing.T) {
	tests := []struct {
		name, config, own, work string
		env                     []string
		mode                    policy.AccessMode
		prefixes                string
		readFile                bool
		origin                  string // HOME and WORK stand for the files
	}{
		{name: "nothing", mode: policy.AccessAllowlist, prefixes: "echo pwd ls date uname whoami", readFile: true, origin: "default"},
		{name: "own", own: `{"tools": {"shell": {"mode": "full"}}}`, mode: policy.AccessFull, prefixes: "echo pwd ls date uname whoami", readFile: true, origin: "HOME"},
		{name: "work", work: `{"tools": {"read_file": {"enabled": false}}}`, mode: policy.AccessAllowlist, prefixes: "echo pwd ls date uname whoami", origin: "WORK"},
		{name: "work cannot widen", work: `{"tools": {"shell": {"mode": "full"}}}`, mode: policy.AccessAllowlist, prefixes: "echo pwd ls date uname whoami", readFile: true, origin: "WORK"},
		{
			name: "both", own: `{"tools": {"shell": {"allowedPrefixes": ["git log", "ls"]}}}`, work: `{"tools": {"shell": {"allowedPrefixes": ["git", "rm"]}}}`,
			mode: policy.AccessAllowlist, prefixes: "git log", readFile: true, origin: "HOME, WORK",
		},
		{name: "work leaves the shell", own: `{"tools": {"shell": {"mode": "full"}}}`, work: `{"tools": {"read_file": {"mode": "off"}}}`, mode: policy.AccessFull, prefixes: "echo pwd ls date uname whoami", origin: "HOME, WORK"},
		{name: "config and work", config: "policy: {toolAccess: {tools: {shell: {mode: full}}}}\n", work: `{"tools": {"shell": {"mode": "off"}}}`, mode: policy.AccessOff, readFile: true, origin: "CONFIG:1, WORK"},
		{
			name: "environment", env: []string{"SHELL_TOOL_MODE=full", "SHELL_TOOL_TIMEOUT_MS=9"}, mode: policy.AccessFull, prefixes: "echo pwd ls date uname whoami",
			readFile: true, origin: "environment (SHELL_TOOL_MODE SHELL_TOOL_TIMEOUT_MS)",
		},
		{name: "environment under work", env: []string{"SHELL_TOOL_MODE=full"}, work: `{"tools": {"shell": {"mode": "allowlist", "allowedPrefixes": ["make"]}}}`, mode: policy.AccessAllowlist, prefixes: "make", readFile: true, origin: "environment (SHELL_TOOL_MODE), WORK"},
		{name: "environment narrows own", env: []string{"SHELL_TOOL_MODE=full"}, own: `{"tools": {"shell": {"mode": "allowlist", "allowedPrefixes": ["make"]}}}`, mode: policy.AccessAllowlist, prefixes: "make", readFile: true, origin: "HOME"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, home, work := at(t)
			places := placesOf(t, work, append(tt.env, "HOME="+home)...)
			own, project, file := filepath.Join(places.Home, "context/tool-access.json"), filepath.Join(work, "context/tool-access.json"), filepath.Join(places.Home, "ken.yaml")
			for name, text := range map[string]string{own: tt.own, project: tt.work, file: tt.config} {
				if text != "" {
					write(t, name, text)
				}
			}
			c, err := Load(places, "")
			if err != nil {
				t.Fatal(err)
			}
			shell := c.Policy.Access.Tool("shell")
			if shell.Mode != tt.mode || strings.Join(shell.AllowedPrefixes, " ") != tt.prefixes {
				t.Errorf("shell = %v %q, want %v %q", shell.Mode, shell.AllowedPrefixes, tt.mode, tt.prefixes)
			}
			read := c.Policy.Access.Tool("read_file")
			if on := read.Enabled && read.Mode != policy.AccessOff; on != tt.readFile {
				t.Errorf("read_file is on: %v, want %v", on, tt.readFile)
			}
			_, origin, err := c.Explain("policy.toolAccess")
			if want := strings.NewReplacer("HOME", own, "WORK", project, "CONFIG", file).Replace(tt.origin); err != nil || origin != want {
				t.Errorf("origin = %s, %v, want %s", origin, err, want)
			}
			if _, err := policy.Compile(c.Policy); err != nil {
				t.Errorf("Compile = %v", err)
			}
			for _, name := range []string{own, project} {
				if slices.Contains(c.Files(), name) != exists(name) {
					t.Errorf("Files() = %q, of which %s should be one if it is there", c.Files(), name)
				}
			}
		})
	}
}

// TestToolAccessRefused: what cannot be understood refuses the configuration,
// with its place.
func TestToolAccessRefused(t *testing.T) {
	tests := []struct {
		name string
		make func(places dirs.Places) error
		env  string
		want string
	}{
		{"syntax", func(p dirs.Places) error { write(t, accessFile(p.Home), "{\n  \"tools\": {,}\n}"); return nil }, "", "HOME:2: invalid JSON"},
		{"key", func(p dirs.Places) error {
			write(t, accessFile(p.Workspace), "{\"tools\":\n{\"shell\": {\"enabeld\": false}}}")
			return nil
		}, "", "WORK:2: unknown key enabeld"},
		{"pipe", func(p dirs.Places) error {
			if err := os.MkdirAll(filepath.Dir(accessFile(p.Home)), 0o755); err != nil {
				return err
			}
			return os.Mkdir(accessFile(p.Home), 0o755)
		}, "", "HOME: not a regular file"},
		{"dangling", func(p dirs.Places) error {
			if err := os.MkdirAll(filepath.Dir(accessFile(p.Workspace)), 0o755); err != nil {
				return err
			}
			return os.Symlink("nowhere", accessFile(p.Workspace))
		}, "", "WORK: the file is not there"},
		{"not a folder", func(p dirs.Places) error { write(t, filepath.Join(p.Workspace, "context"), ""); return nil }, "", ""},
		{"both", func(p dirs.Places) error {
			write(t, accessFile(p.Home), "{}")
			write(t, filepath.Join(p.Home, "ken.yaml"), "policy:\n  toolAccess: {}\n")
			return nil
		}, "", "HOME: policy.toolAccess is said at KEN:2 as well; keep one of the two"},
		{"environment", func(dirs.Places) error { return nil }, "SHELL_TOOL_MODE=fll", `environment: SHELL_TOOL_MODE="fll": want off, allowlist or full`},
	}
	for _, tt := range tests {
		_, home, work := at(t)
		places := placesOf(t, work, tt.env, "HOME="+home)
		if err := tt.make(places); err != nil {
			t.Fatal(err)
		}
		c, err := Load(places, "")
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: Load = %v, want nothing amiss", tt.name, err)
			}
			continue
		}
		want := strings.NewReplacer("HOME", accessFile(places.Home), "WORK", accessFile(work), "KEN", filepath.Join(places.Home, "ken.yaml")).Replace(tt.want)
		var refused *Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(c, Config{}) {
			t.Errorf("%s: Load = %v, want %s", tt.name, err, want)
		}
	}
	// A file that stands for the user's may say it beside tool-access.json.
	places, _, work := at(t)
	write(t, accessFile(places.Home), `{"tools": {"shell": {"mode": "off"}}}`)
	write(t, filepath.Join(work, "k.yaml"), "policy: {toolAccess: {tools: {shell: {mode: full}}}}\n")
	write(t, filepath.Join(work, "l.yaml"), "")
	if c, err := Load(places, "k.yaml"); err != nil || c.Policy.Access.Tool("shell").Mode != policy.AccessFull {
		t.Errorf("Load(k.yaml) = %+v, %v, want the shell in full", c.Policy.Access, err)
	}
	if c, err := Load(places, "l.yaml"); err != nil || c.Policy.Access.Tool("shell").Mode != policy.AccessOff {
		t.Errorf("Load(l.yaml) = %+v, %v, want the shell off", c.Policy.Access, err)
	}
}

// TestStoreHidesPasswords: nothing that is shown has one.
func TestStoreHidesPasswords(t *testing.T) {
	for address, want := range map[string]string{
		"":                                "",
		"postgres://db/ken":               "postgres://db/ken",
		"postgres://ada@db/ken":           "postgres://ada@db/ken",
		"postgres://ada:hunter2@db/ken":   "postgres://ada:•••@db/ken",
		"postgres://ada:@db/ken":          "postgres://ada:•••@db/ken",
		"postgresql://a%40b:hunter2@db/k": "postgresql://a%40b:•••@db/k",
		"postgres:///ken?host=/run&password=hunter2":      "postgres:///ken?host=%2Frun&password=•••",
		"postgres://db/ken?sslPassword=hunter2&sslmode=x": "postgres://db/ken?sslPassword=•••&sslmode=x",
	} {
		places, _, _ := at(t)
		file := filepath.Join(places.Home, "ken.yaml")
		if err := Set(file, "store", address); err != nil {
			t.Errorf("Set(store, %s) = %v", address, err)
			continue
		}
		c, err := Load(places, "")
		if err != nil || c.Store != address {
			t.Errorf("Load gives %s, %v, want %s", c.Store, err, address)
		}
		value, _, err := c.Explain("store")
		var shown struct{ V string }
		v, perr := yamldoc.ParseValue([]byte(value), yamldoc.Limits{})
		shown.V, _ = v.Any.(string)
		if err != nil || perr != nil || shown.V != want {
			t.Errorf("Explain(store) = %s, %v, want %s", value, err, want)
		}
	}
	for _, bad := range []string{"mysql://ada:hunter2@db/x", "ada:hunter2@db", "postgres://ada:hunter2@/x", "postgres://ada:hunter2@db:x/y", "postgres:hunter2", "hunter2\x1b"} {
		places, _, _ := at(t)
		file := filepath.Join(places.Home, "ken.yaml")
		err := Set(file, "store", bad)
		if capability.KindOf(err) != capability.Invalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Set(store, %q) = %v, want a refusal that does not repeat it", bad, err)
		}
		write(t, file, "store: "+yamledit.Flow(bad)+"\n")
		if _, err := Load(places, ""); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "ken.yaml:1: store ") {
			t.Errorf("Load of %q = %v, want a refusal that does not repeat it", bad, err)
		}
	}
	for value, want := range map[string]string{`"postgres://ada:hunter2@db/ken"`: "postgres://ada:•••@db/ken", "post gres://a:hunter2@b": hidden} {
		if got := Shown("store", value); got != want {
			t.Errorf("Shown(store, %s) = %s, want %s", value, got, want)
		}
	}
	if got := Shown("serve.addr", "localhost:1"); got != "localhost:1" {
		t.Errorf("Shown(serve.addr) = %s, want it as it is", got)
	}
	// A layout that cannot be edited is said with the value, but not that one.
	file := filepath.Join(t.TempDir(), "ken.yaml")
	write(t, file, "? serve\n: {addr: 'localhost:1'}\n--- {}\n")
	if err := Set(file, "store", "postgres://ada:hunter2@db/ken"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Set = %v, want a refusal without the password", err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "65536": 65536, "1B": 1, "1KB": 1000, "1kB": 1000, "1KiB": 1024, "64MiB": 64 << 20, "512MB": 512e6, "1GiB": 1 << 30, "2GB": 2e9, "1TiB": 1 << 40, "3 MiB": 3 << 20, "none": NoLimit,
	} {
		path, v, err := asked("sandbox.memory", text)
		if err != nil {
			t.Errorf("asked(%s, %s) = %v", path, text, err)
			continue
		}
		s, _ := settingOf("get", "sandbox.memory")
		var c, again Config
		s.read(&reading{}, spot{}, v, &c)
		if c.Sandbox.Memory != want {
			t.Errorf("%s is %d, want %d", text, c.Sandbox.Memory, want)
		}
		_, v, err = asked("sandbox.memory", yamledit.Flow(s.show(&c)))
		if s.read(&reading{}, spot{}, v, &again); err != nil || !reflect.DeepEqual(again.Sandbox, c.Sandbox) {
			t.Errorf("%s is shown as %s, which is %d, %v", text, yamledit.Flow(s.show(&c)), again.Sandbox.Memory, err)
		}
	}
	for _, bad := range []string{"0", "-1", "1.5GiB", "MiB", "1 000", "01KiB", "010", "0x10", "1mib", "1M", "+1KiB", "99999999TiB", "9223372036854775807TiB", "true", "[]", "null"} {
		if _, _, err := asked("sandbox.memory", bad); err == nil || !strings.Contains(err.Error(), "or none for no limit") && bad != "null" {
			t.Errorf("asked(sandbox.memory, %s) = %v, want a refusal", bad, err)
		}
	}
	if _, _, err := asked("limits.inline", "none"); err == nil {
		t.Error("limits.inline took none")
	}
}

// placesOf returns the places of an environment of lines NAME=value.
func placesOf(t *testing.T, cwd string, env ...string) dirs.Places {
	t.Helper()
	p, err := dirs.New(func(name string) string {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}, cwd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
