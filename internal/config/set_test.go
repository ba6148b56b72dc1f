package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/yamledit"
)

// TestSetEdits reads testdata/set: "set key value" lines, the file before and
// after all of them.
func TestSetEdits(t *testing.T) {
	files, err := filepath.Glob("testdata/set/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %q, %v", files, err)
	}
	for _, name := range files {
		for _, end := range []string{"\n", "\r\n"} {
			t.Run(fmt.Sprintf("%s %q", strings.TrimSuffix(filepath.Base(name), ".txtar"), end), func(t *testing.T) {
				archive, err := txtar.ParseFile(name)
				if err != nil {
					t.Fatal(err)
				}
				before := strings.ReplaceAll(string(archive.Files[0].Data), "\n", end)
				want := strings.ReplaceAll(string(archive.Files[1].Data), "\n", end)
				if json.Valid([]byte(before)) || before == "" {
					want = string(archive.Files[1].Data) // written anew
				}
				file := filepath.Join(t.TempDir(), "ken.yaml")
				write(t, file, before)
				for line := range strings.Lines(string(archive.Comment)) {
					words := strings.SplitN(strings.TrimSpace(line), " ", 3)
					if words[0] != "set" {
						continue
					}
					if err := Set(file, words[1], words[2]); err != nil {
						t.Fatalf("Set(%s, %s) = %v", words[1], words[2], err)
					}
				}
				if got := read(t, file); got != want {
					t.Errorf("after all: %q\nwant: %q", got, want)
				}
			})
		}
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSetRefuses: what is wrong is said, and the file is as it was.
func TestSetRefuses(t *testing.T) {
	tests := []struct{ text, key, value, want string }{
		{"", "capabilities.maxToken", "5", "did you mean capabilities.maxTokens?"},
		{"", "tools.shell.mode", "full", "ken config set policy.toolAccess '{tools: {shell: {mode: VALUE}}}'"},
		{"", "shell.env", "[TZ, PATH]", "shell.env[1] PATH is set by Ken for every command and never passed on; take it off the list; a command's programs come from"},
		{"", "shell.env", "[HOME]", "shell.env[0] HOME is set by Ken"},
		{"", "shell.env", "[PAGER]", "shell.env[0] PAGER is set by Ken"},
		{"", "tools..x", "full", "lists all"},
		{"", "tools.shell'.x", "full", "similar keys: mcp.maxTools, chat.toolDelivery, policy.toolAccess, chat.toolFailureMode; ken config get lists all"},
		{"", "nothing.at.all", "x", "there is no such key; ken config get lists all"},
		{"", "log.level", "full", "similar keys: capabilities.logLevel; ken config get lists all"},
		{"", "shell.folders", "x", "similar keys: shell.hosts, shell.env; ken config get lists all"},
		{"", "zzzzzzzzzz", "x", "there is no such key; ken config get lists all"},
		{"", "capabilities", "{enabled: true}", "this is a section, not a key; name one of its keys: enabled"},
		{"", "capabilities.maxTokens", "many", "capabilities.maxTokens must be a whole number, not the text many"},
		{"", "capabilities.maxTokens", "", "capabilities.maxTokens has no value"},
		{"", "capabilities.enabled", "on", "must be true or false"},
		{"", "capabilities.exclude", "a", "must be a list of ids, as in [first, second]"},
		{"", "capabilities.exclude", "[a", "set capabilities.exclude: "},
		{"", "capabilities.logLevel", "loud", "must be detailed, summary or none"},
		{"", "catalog.debounce", "500", "catalog.debounce 500 is not a duration; write a number with a unit"},
		{"", "catalog.pins.tool:x", "sha256:1", "is not a content hash"},
		{"", "catalog.pins.", "x", "there is no such key"},
		{"", "catalog.sources", "[{path: /a, url: https://b}]", "names 2 places"},
		{"", "discovery.agents", "{a: {profil: lean}}", "unknown key discovery.agents.a.profil; did you mean discovery.agents.a.profile?"},
		{"", "discovery.agents.a.profile", "lean", "there is no such key; discovery.agents is one value: set it whole with ken config set discovery.agents, or edit it in ken.yaml"},
		{"serve: {adr: x}\n", "capabilities.enabled", "true", "ken.yaml:1: unknown key serve.adr; did you mean serve.addr?"},
		{"serve: {adr: x}\n", "capabilities.enabled", "true", "capabilities.enabled was not set; fix the file first"},
		{"a: [\n", "capabilities.enabled", "true", "ken.yaml:1: "},
		{"{serve: {addr: 'localhost:1'}} # mine\n", "capabilities.enabled", "true", "edit FILE by hand: capabilities.enabled: true"},
		{"? serve\n: {addr: 'localhost:1'}\n", "serve.addr", "localhost:2", "edit FILE by hand: serve.addr: localhost:2"},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "ken.yaml")
		write(t, file, tt.text)
		err := Set(file, tt.key, tt.value)
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(tt.want, "FILE", file)) {
			t.Errorf("Set(%q, %s, %s) = %v, want %q", tt.text, tt.key, tt.value, err, tt.want)
		}
		if got := read(t, file); got != tt.text {
			t.Errorf("Set(%q, %s, %s) left %q", tt.text, tt.key, tt.value, got)
		}
		if names := listing(t, filepath.Dir(file)); names != "ken.yaml" {
			t.Errorf("Set(%q, %s, %s) left %s", tt.text, tt.key, tt.value, names)
		}
	}
	// A value that mends the file is taken.
	file := filepath.Join(t.TempDir(), "ken.yaml")
	write(t, file, "catalog: # x\n  poll: 5\n")
	if err := Set(file, "catalog.poll", "5s"); err != nil || read(t, file) != "catalog: # x\n  poll: 5s\n" {
		t.Errorf("Set on a bad value = %v, %q, want it fixed", err, read(t, file))
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestS1U13SetAtomic: mode and links stay, the old content is kept, nothing
// else is left behind (K1.17).
func TestS1U13SetAtomic(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real", "ken.yaml"), filepath.Join(dir, "ken.yaml")
	write(t, target, "serve: {addr: 'localhost:1'}\n")
	if err := os.Chmod(target, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := Set(link, "serve.addr", "localhost:2"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is now %v, %v", info, err)
	}
	for name, want := range map[string]string{"ken.yaml": "serve: {addr: localhost:2}\n", "ken.yaml.bak": "serve: {addr: 'localhost:1'}\n"} {
		full := filepath.Join(dir, "real", name)
		info, err := os.Stat(full)
		if err != nil || info.Mode().Perm() != 0o640 || read(t, full) != want {
			t.Errorf("%s = %q, %v, %v, want %q with mode 640", name, read(t, full), info, err, want)
		}
	}
	if names := listing(t, filepath.Dir(target)); names != "ken.yaml ken.yaml.bak" {
		t.Errorf("left behind: %s", names)
	}

	// Setting what is so already writes nothing.
	before, _ := os.Stat(target)
	if err := Set(link, "serve.addr", "localhost:2"); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(target); !os.SameFile(before, after) {
		t.Error("setting the same value replaced the file")
	}
}

func TestSetMakesFile(t *testing.T) {
	for name, want := range map[string]string{
		"ken.yaml": "serve:\n  addr: localhost:1\n", "ken.json": "{\n  \"serve\": {\n    \"addr\": \"localhost:1\"\n  }\n}\n",
	} {
		file := filepath.Join(t.TempDir(), "new", name)
		if err := Set(file, "serve.addr", "localhost:1"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 || read(t, file) != want {
			t.Errorf("%s = %q, %v, want %q for the user alone", name, read(t, file), err, want)
		}
		if names := listing(t, filepath.Dir(file)); names != name {
			t.Errorf("left behind: %s", names)
		}
		other := filepath.Join(filepath.Dir(file), map[string]string{"ken.yaml": "ken.json", "ken.json": "ken.yaml"}[name])
		if err := Set(other, "serve.addr", "localhost:1"); err == nil || !strings.Contains(err.Error(), name+" is there already") {
			t.Errorf("Set(%s) beside %s = %v, want a refusal", other, name, err)
		}
	}
}

// TestSetTakesTextAsTyped: nothing of a text is taken for YAML, unless it is
// in quotes.
func TestSetTakesTextAsTyped(t *testing.T) {
	places, _, work := at(t)
	file := filepath.Join(work, "c.yaml")
	for value, want := range map[string]string{
		"007": "007", "null": "null", "a #b": "a #b", "{a: b}": "{a: b}", "*a": "*a", "it's": "it's", "true": "true",
		`"a\"b"`: `a"b`, "'it''s'": "it's", `""`: "", `"a" b`: `"a" b`, "": "",
	} {
		if err := Set(file, "discovery.embeddingModelId", value); err != nil {
			t.Errorf("Set(%q) = %v", value, err)
			continue
		}
		if c, err := Load(places, file); err != nil || c.Discovery.EmbeddingModelID != want {
			t.Errorf("Set(%q): Load gives %q, %v, want %q", value, c.Discovery.EmbeddingModelID, err, want)
		}
	}
	for _, value := range []string{"a\x1b[2J", "a\xff", "\u200b"} {
		if err := Set(file, "discovery.embeddingModelId", value); err == nil || !strings.Contains(err.Error(), "cannot be seen") {
			t.Errorf("Set(%q) = %v, want a refusal", value, err)
		}
	}
}

// TestSetFromHome: a folder may begin with ~, as in a file.
func TestSetFromHome(t *testing.T) {
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	for _, key := range []string{"policy.readRoots", "policy.writeRoots"} {
		if err := Set(file, key, "[~/data]"); err != nil {
			t.Fatal(err)
		}
		c, err := Load(places, "")
		if err != nil {
			t.Fatal(err)
		}
		want := "[" + filepath.ToSlash(filepath.Join(places.UserHome, "data")) + "]"
		if got, _, err := c.Explain(key); got != want || err != nil {
			t.Errorf("%s = %s, %v; want %s", key, got, err, want)
		}
	}
}

func TestSetOddFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ken.yaml")
	tests := []struct {
		name string
		make func() error
		want string
	}{
		{"read-only", func() error { return os.WriteFile(file, nil, 0o400) }, "read-only"},
		{"dangling link", func() error { return os.Symlink("nowhere", file) }, "broken link"},
		{"directory", func() error { return os.Mkdir(file, 0o755) }, "not a regular file"},
	}
	for _, tt := range tests {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := tt.make(); err != nil {
			t.Fatal(err)
		}
		if err := Set(file, "serve.addr", "localhost:1"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Set = %v, want %q", tt.name, err, tt.want)
		}
		if names := listing(t, dir); names != "ken.yaml" {
			t.Errorf("%s: left behind: %s", tt.name, names)
		}
	}
}

// TestReplaceNoticesOthers: what somebody else wrote since the file was read
// is never overwritten.
func TestReplaceNoticesOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ken.yaml")
	conflict := func(when string, err error) {
		t.Helper()
		if capability.KindOf(err) != capability.Conflict || !strings.Contains(err.Error(), "changed by another process") {
			t.Errorf("%s: replace = %v, want a conflict", when, err)
		}
	}
	write(t, file, "theirs\n")
	conflict("made meanwhile", replace(file, nil, nil, []byte("ours\n")))
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	conflict("changed meanwhile", replace(file, []byte("as read\n"), info, []byte("ours\n")))
	if got := read(t, file); got != "theirs\n" {
		t.Errorf("the file is now %q, want theirs", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	conflict("removed meanwhile", replace(file, []byte("theirs\n"), info, []byte("ours\n")))
	if names := listing(t, filepath.Dir(file)); names != "ken.yaml.bak" {
		t.Errorf("left behind: %s", names)
	}
}

// TestSetTogether: many at once never corrupt the file, and what one of them
// said it wrote is there.
func TestSetTogether(t *testing.T) {
	testkit.CI(t, "makes many edits at once")
	file := filepath.Join(t.TempDir(), "ken.yaml")
	write(t, file, string(Sample()))
	keys := []string{
		"capabilities.maxTokens", "discovery.tier0TokenBudget", "discovery.tier1TokenBudget", "discovery.tier2TokenBudget",
		"discovery.totalTokenBudget", "discovery.tier1TopK", "discovery.tier2TopK",
	}
	places, _, _ := at(t)
	written := make([]int, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		wg.Go(func() {
			for n := 1; n <= 5; n++ {
				switch err := Set(file, key, strconv.Itoa(n)); {
				case err == nil:
					written[i] = n
				case capability.KindOf(err) != capability.Conflict:
					t.Errorf("Set(%s, %d) = %v, want nil or a conflict", key, n, err)
				}
				if _, err := Load(places, file); err != nil {
					t.Errorf("Load meanwhile = %v", err)
				}
			}
		})
	}
	wg.Wait()
	c, err := Load(places, file)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if written[i] == 0 {
			t.Errorf("no Set of %s came through", key)
			continue
		}
		if got, _, _ := c.Explain(key); got != strconv.Itoa(written[i]) {
			t.Errorf("%s = %s, want %d, as Set said", key, got, written[i])
		}
	}
}

// settingValue draws a key and a value for it.
func settingValue(t *rapid.T) (key, value string) {
	word := rapid.StringMatching(`[a-zA-Z0-9 .:#'"{}\[\],&*!|>%@é-]{1,12}`)
	list := rapid.Custom(func(t *rapid.T) string {
		var items []string
		for _, s := range rapid.SliceOfN(word, 0, 3).Draw(t, "items") {
			items = append(items, yamledit.Flow(s))
		}
		return "[" + strings.Join(items, ",") + "]"
	})
	whole := rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(0, 1000).Draw(t, "n")) })
	part := rapid.Custom(func(t *rapid.T) string {
		return strconv.FormatFloat(rapid.Float64Range(0, 1).Draw(t, "x"), 'f', -1, 64)
	})
	truth := rapid.SampledFrom([]string{"true", "false"})
	values := map[string]*rapid.Generator[string]{
		"capabilities.enabled": truth, "capabilities.maxTokens": whole, "capabilities.confidenceThreshold": part,
		"capabilities.forceInclude": list, "capabilities.exclude": list,
		"capabilities.logLevel": rapid.SampledFrom([]string{"none", "summary", "detailed"}),
		"catalog.starter":       rapid.SampledFrom([]string{"auto", "on", "off"}), "catalog.watch": truth,
		"catalog.debounce": rapid.SampledFrom([]string{"1ms", "1.5s", "1m"}), "catalog.sanitizer": rapid.SampledFrom([]string{"reveal", "seed"}),
		"catalog.sources":     rapid.SampledFrom([]string{"[]", "[{path: /a}]", "[{name: a b, path: /a b}, {url: 'https://x/#y'}]"}),
		"discovery.tier1TopK": whole, "discovery.graphBoostFactor": part, "discovery.embeddingModelId": word,
		"capabilities.rollout":             rapid.SampledFrom([]string{"full", "soft", "monitor"}),
		"capabilities.rolloutSessionTypes": list, "discovery.embeddingTimeout": rapid.SampledFrom([]string{"1ms", "1.5s", "10s"}),
		"discovery.agents":  rapid.SampledFrom([]string{"{}", "{a: {profile: lean}, 'b #c': {exclude: [x, 'y, z']}}", "{a: {}}"}),
		"experiment.config": rapid.SampledFrom([]string{"/b.yaml", "/b #c.yaml", ""}),
		"serve.addr":        rapid.SampledFrom([]string{"localhost:1", "[::1]:0", "localhost:65535"}),
		"serve.oidc":        rapid.SampledFrom([]string{"{}", "{issuer: 'https://id.example', clientID: ken}", "{issuer: 'http://127.0.0.1:9/a', clientID: 'k #1', admit: [x, 'y, z'], name: A & B}"}),
		"serve.rate":        rapid.SampledFrom([]string{"{}", "{requests: 0}", "{requests: 7, burst: 0}", "{burst: 9}", "{open: 3}"}),
		"serve.tenantRate":  rapid.SampledFrom([]string{"{}", "{requests: 0}", "{requests: 7, burst: 8}"}), "limits.perTenant": rapid.SampledFrom([]string{"none", "3"}),

		"policy.intents":     rapid.SampledFrom([]string{"off", "strict"}),
		"policy.rules":       rapid.SampledFrom([]string{"[]", "[{effect: deny, argv: [git push, [npm, [a, 1.10]]]}]", "[{id: 'a #b', effect: ask, hosts: ['*.x']}]"}),
		"policy.modes":       rapid.SampledFrom([]string{"{}", "{x: {groups: [read]}}"}),
		"policy.permissions": rapid.SampledFrom([]string{"{}", "{network: ask, filesystem.write: deny}"}),
		"policy.protect":     rapid.SampledFrom([]string{"[]", "['*.tf', a/**]"}),
		"limits.inline":      rapid.SampledFrom([]string{"1", "64KiB", "20000"}), "sandbox.memory": rapid.SampledFrom([]string{"none", "1GiB", "7"}),
		"sandbox.processes": rapid.SampledFrom([]string{"none", "9"}), "shell.env": rapid.SampledFrom([]string{"[]", "[LANG, TZ]"}),
		"store": rapid.SampledFrom([]string{"", "postgres://ada@db/ken", "postgres://ada:hunter2@db/ken?sslmode=require"}),
	}
	key = rapid.SampledFrom(append(sortedKeys(values), "pin")).Draw(t, "key")
	if key == "pin" {
		id := rapid.StringMatching(`[a-z:. #'"-]{1,10}`).Draw(t, "id")
		return pinPrefix + id, "sha256:" + rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "hash")
	}
	return key, values[key].Draw(t, "value")
}

func sortedKeys(m map[string]*rapid.Generator[string]) []string {
	var keys []string
	for _, s := range settings() {
		if _, ok := m[s.name]; ok {
			keys = append(keys, s.name)
		}
	}
	return keys
}

// TestSetProperty: after Set, Load gives the value; every other key, every
// comment and the backup are as they were before.
func TestSetProperty(t *testing.T) {
	testkit.CI(t, "makes hundreds of edits")
	places, _, _ := at(t)
	starts := []string{
		"", string(Sample()), "{}\n", "# only a comment", "\ufeffserve:\r\n  addr: localhost:1 # here\r\n",
		"capabilities:\n  exclude:\n  - a # one\n  - b\n  enabled: true\n# end\n", "capabilities: {exclude: [a, b], enabled: true} # flow\n",
		"catalog:\n  # before\n  pins:\n    # the pin\n    tool:x: sha256:00112233445566778899aabbccddeeff # why\n\n  # after\n  poll: 5s\nserve: ~\n",
	}
	rapid.Check(t, func(rt *rapid.T) {
		file := filepath.Join(places.Workspace, "prop.yaml")
		text := rapid.SampledFrom(starts).Draw(rt, "start")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "edits") {
			key, value := settingValue(rt)
			before, err := Load(places, file)
			if err != nil {
				rt.Fatalf("Load before = %v", err)
			}
			old := read(t, file)
			if err := Set(file, key, value); err != nil {
				rt.Fatalf("Set(%q, %s, %s) = %v", old, key, value, err)
			}
			now := read(t, file)
			after, err := Load(places, file)
			if err != nil {
				rt.Fatalf("Load after Set(%q, %s, %s) = %v\n%s", old, key, value, err, now)
			}
			got, _, err := after.Explain(key)
			if want := canonicalValue(t, key, value); err != nil || got != want {
				rt.Fatalf("Set(%q, %s, %s): Explain = %s, %v, want %s\n%s", old, key, value, got, err, want, now)
			}
			whole := strings.TrimSuffix(pinPrefix, ".")
			were := before.Settings()
			for i, s := range after.Settings() {
				was := were[i].Value
				if s.Key != key && !(s.Key == whole && strings.HasPrefix(key, pinPrefix)) && s.Value != was {
					rt.Fatalf("Set(%q, %s, %s) made %s of %s: %s\n%s", old, key, value, s.Value, s.Key, was, now)
				}
			}
			for line := range strings.Lines(old) {
				if _, comment := yamledit.SplitComment(strings.TrimRight(line, "\r\n")); !strings.Contains(now, strings.TrimSpace(comment)) {
					rt.Fatalf("Set(%q, %s, %s) lost the comment %q:\n%s", old, key, value, comment, now)
				}
			}
			if now != old && read(t, file+".bak") != old {
				rt.Fatalf("Set(%q, %s, %s) kept %q", old, key, value, read(t, file+".bak"))
			}
		}
	})
}

// canonicalValue returns a value as Explain would.
func canonicalValue(t testing.TB, key, value string) string {
	t.Helper()
	name := key
	_, v, err := asked(key, value)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(key, pinPrefix) {
		return yamledit.Flow(v.Any)
	}
	s, err := settingOf("get", name)
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	s.read(&reading{dir: "/"}, spot{}, v, &c)
	return yamledit.Flow(s.show(&c))
}

func TestSetKeepsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ken.json")
	write(t, file, read(t, "testdata/seed/ken.json"))
	for key, value := range map[string]string{
		"capabilities.maxTokens": "5", "catalog.pins.tool:x": "sha256:00112233445566778899aabbccddeeff",
		"catalog.sources": "[{path: /a}]", "discovery.graphBoostFactor": "0.001",
	} {
		if err := Set(file, key, value); err != nil {
			t.Fatalf("Set(%s) = %v", key, err)
		}
		if got := read(t, file); !json.Valid([]byte(got)) {
			t.Fatalf("after Set(%s): %s is not JSON", key, got)
		}
	}
	// A rule's words stay as they are written when another key is set.
	write(t, file, `{"policy": {"rules": [{"effect": "deny", "argv": [["npm", 1.10]]}]}}`)
	if err := Set(file, "serve.addr", "localhost:2"); err != nil || !strings.Contains(read(t, file), "1.10") {
		t.Errorf("Set beside a rule = %v, %s, want 1.10 as it was", err, read(t, file))
	}
	write(t, file, "serve: {addr: 'localhost:1'}\n")
	var refused *Error
	if err := Set(file, "serve.addr", "localhost:2"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "this is not JSON") {
		t.Errorf("Set in YAML named .json = %v, want a refusal", err)
	}
}
