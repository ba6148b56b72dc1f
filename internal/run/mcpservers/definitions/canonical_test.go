package definitions

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ken/internal/connect"
	"ken/internal/govern/audit"
)

// TestCanonical: nothing of a secret is pinned, and what else differs is told
// apart.
func TestCanonical(t *testing.T) {
	const key = "sk-live0123456789ABCDEFabcdef"
	instance, other := instanceKey(t), instanceKey(t)
	s := connect.Server{
		Name: "s", Command: "npx", Args: []string{"--api-key", key, "-y"},
		Env: map[string]string{
			"API_TOKEN": key, "DATABASE_URL": "postgres://u:hunter22secret@db/x", "MODE": "fast", "SKIP_AUTH": "false",
			"DB_PASSWORD_COMMAND": "echo hunter22", "APPLICATION_CREDENTIALS": "/home/u/hunter22.json", "SECOND_TOKEN": "${MINE}", "THIRD_TOKEN": "${MINE:-hunter22}",
		},
		URL:     "https://u:" + key + "@example.com/mcp/" + key + "/x?api_key=" + key,
		Headers: map[string]string{"Authorization": "Bearer " + key, "X-Readonly": "true", "X-Key": "${MINE}"},
	}
	of := func(s connect.Server) string { return string(canonical(instance, s).Input) }
	text := of(s)
	if strings.Contains(text, key) || strings.Contains(text, "hunter22") {
		t.Errorf("canonical = %s, with a secret in it", text)
	}
	for _, want := range []string{
		`"command":"npx"`, `"--api-key","(not shown, `, `"API_TOKEN":"(a secret)"`, `"MODE":"fast"`, `"Authorization":"(a secret)"`, `"X-Readonly":"true"`, `"X-Key":"${MINE}"`,
		`"https://example.com/mcp/…/x (and what is not shown, `, `"SECOND_TOKEN":"${MINE}"`, `"THIRD_TOKEN":"(not shown, with ${MINE}, `, `"DB_PASSWORD_COMMAND":"(not shown, `, `"SKIP_AUTH":"false"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("canonical = %s, want %s in it", text, want)
		}
	}
	if !regexp.MustCompile(`\(not shown, [0-9a-f]{32}\)`).MatchString(text) || text == string(canonical(other, s).Input) {
		t.Errorf("canonical = %s, want 16 bytes of a sum under the key", text)
	}
	with := func(name, value string) func(*connect.Server) {
		return func(s *connect.Server) { s.Env = maps.Clone(s.Env); s.Env[name] = value }
	}
	same := s
	with("API_TOKEN", "rotated")(&same)
	same.Headers = maps.Clone(s.Headers)
	same.Headers["Authorization"] = "Bearer other"
	if got := of(same); got != text {
		t.Errorf("canonical with new tokens = %s, want %s", got, text)
	}
	for name, change := range map[string]func(*connect.Server){
		"command":           func(s *connect.Server) { s.Command = "evil" },
		"an arg":            func(s *connect.Server) { s.Args = []string{"--api-key", key + "1", "-y"} },
		"a value":           with("MODE", "slow"),
		"a reference":       with("API_TOKEN", "${GITHUB_TOKEN}"),
		"another reference": with("SECOND_TOKEN", "${GITHUB_TOKEN}"),
		"a default":         with("THIRD_TOKEN", "${MINE:-hunter23}"),
		"a command":         with("DB_PASSWORD_COMMAND", "evil"),
		"a file":            with("APPLICATION_CREDENTIALS", "/tmp/evil.json"),
		"a path":            with("API_TOKEN", "/tmp/evil"),
		"a switch":          with("SKIP_AUTH", "true"),
		"url":               func(s *connect.Server) { s.URL += "x" },
		"header":            func(s *connect.Server) { s.Headers = map[string]string{"X-Other": "1"} },
		"of a header":       func(s *connect.Server) { s.Headers = maps.Clone(s.Headers); s.Headers["X-Readonly"] = "false" },
		"header's name": func(s *connect.Server) {
			s.Headers = maps.Clone(s.Headers)
			s.Headers["Authorization"] = "Bearer ${GITHUB_TOKEN}"
		},
		"cwd":     func(s *connect.Server) { s.Cwd = "/tmp" },
		"hosts":   func(s *connect.Server) { s.Ken.Hosts = []string{"evil.example.com"} },
		"profile": func(s *connect.Server) { s.Ken.Profile = "imported" },
		"switch":  func(s *connect.Server) { s.Disabled = true },
		"include": func(s *connect.Server) { s.Include = []string{"*"} },
		"exclude": func(s *connect.Server) { s.Exclude = []string{"erase"} },
	} {
		other := s
		change(&other)
		if of(other) == text {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

func instanceKey(t *testing.T) audit.Key {
	t.Helper()
	key, err := audit.LoadKey(filepath.Join(t.TempDir(), "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
