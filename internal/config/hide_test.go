package config

import (
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/dirs"
)

// TestSecretsAreNotShown: a secret that stands in a definition is in no value
// that people are shown, and everything else is.
func TestSecretsAreNotShown(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ken.yaml"), `
mcp:
  servers:
    memo: {command: memo, args: [--api-key, sk-ant-abcdefghij0123456789, --token=hunter2hunter2, /data/notes, -y, "${secret:memo}"], env: {MODE: fast, A: "${secret:a}"}}
    web: {url: "https://me:hunter2hunter2@h.example/mcp?token=hunter2hunter2&page=3", clientId: Zx9Kq2Lm8Vb4Nt7Rw1Yp5Hd3Gs6Jf0Cu}
providers: {lab: {wire: openai-chat, url: "https://lab.example/v1", key: LAB_API_KEY}}
hooks: {check: {command: [./check.sh, --password, hunter2hunter2]}}
catalog: {sources: [{name: far, url: "https://far.example/tools.json?api_key=hunter2hunter2", sha256: `+strings.Repeat("2c26b46b68ffc68f", 4)+`}]}
`)
	cfg, err := Load(dirs.Places{Home: dir, Project: t.TempDir()}, "")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, s := range cfg.Settings() {
		all += s.Key + ": " + s.Value + "\n"
	}
	servers, _, err := cfg.Explain("mcp.servers")
	if err != nil {
		t.Fatal(err)
	}
	args, _, err := cfg.Explain("mcp.servers.memo.args")
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{all, servers, args} {
		for _, secret := range []string{"hunter2", "sk-ant", "MODE: fast"} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s is shown in:\n%s", secret, shown)
			}
		}
	}
	for _, want := range []string{
		`[--api-key, •••, --token=•••, /data/notes, -y, "${secret:memo}"]`, `url: https://me:•••@h.example/mcp?token=•••&page=3`,
		"Zx9Kq2Lm8Vb4Nt7Rw1Yp5Hd3Gs6Jf0Cu", "key: LAB_API_KEY", "2c26b46b68ffc68f2c26", "far.example/tools.json?api_key=•••", "[./check.sh, --password, •••]", "${secret:a}",
	} {
		if !strings.Contains(strings.ReplaceAll(all, `"`, ""), strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("the settings lack %s:\n%s", want, all)
		}
	}
	for _, test := range []struct{ key, value, want string }{
		{"mcp.servers.x", "{command: x, args: [--api-key, sk-ant-abcdefghij0123456789]}", "{command: x, args: [--api-key, •••]}"},
		{"mcp.servers.x", "{command: x, args: [-y]}", "{command: x, args: [-y]}"},
		{"mcp.servers.x.env.TOKEN", "hunter2", "•••"},
		{"mcp.servers.x.url", "https://h.example/mcp?token=hunter2", "https://h.example/mcp?token=•••"},
		{"catalog.pins.tool:x", "sha256:" + strings.Repeat("ab", 32), "sha256:" + strings.Repeat("ab", 32)},
	} {
		if got := Shown(test.key, test.value); strings.ReplaceAll(got, `"`, "") != test.want {
			t.Errorf("Shown(%s, %s) = %s, want %s", test.key, test.value, got, test.want)
		}
	}
}
