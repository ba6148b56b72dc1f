package connect

import "testing"

// TestRotates: only a plain token may become another unseen, not what may run or
// name something.
func TestRotates(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"API_TOKEN", "one", true},
		{"apiKey", "sesame-4711-open", true},
		{"GITHUB_TOKEN", "ghp_0123456789abcdefABCDEF", true},
		{"TOKEN", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", true},
		{"DB_PASSWORD", "cGFzc3dvcmQ=", true},
		{"MODE", "one", false},
		{"API_TOKEN", "${GITHUB_TOKEN}", false},
		{"API_TOKEN", "$GITHUB_TOKEN", false},
		{"API_TOKEN", "{env:GITHUB_TOKEN}", false},
		{"API_TOKEN", "env:GITHUB_TOKEN", false},
		{"API_TOKEN", "/run/token", false},
		{"API_TOKEN", "run/token", false},
		{"API_TOKEN", "..", false},
		{"API_TOKEN", "evil.js", false},
		{"API_TOKEN", "-x", false},
		{"API_TOKEN", `run\token`, false},
		{"API_TOKEN", "cat token", false},
		{"API_TOKEN", "a;b", false},
		{"API_TOKEN", "a\nb", false},
		{"API_TOKEN", "", false},
		{"SKIP_AUTH", "true", false},
		{"PASSWORD_COMMAND", "evil", false},
		{"credentialHelper", "evil", false},
		{"SECRET_PROGRAM", "evil", false},
		{"TOKEN_FILE", "evil", false},
		{"APPLICATION_CREDENTIALS", "evil", false},
	} {
		if got := Rotates(test.name, test.value); got != test.want {
			t.Errorf("Rotates(%q, %q) = %v, want %v", test.name, test.value, got, test.want)
		}
	}
}

// TestHidesDefaults: a reference is no secret, and what stands in its place may
// be one.
func TestHidesDefaults(t *testing.T) {
	for value, want := range map[string]bool{
		"${API_TOKEN}": false, "Bearer ${API_TOKEN}": false, "${API_TOKEN:-}": false, "${API_TOKEN:-none}": false,
		"${API_TOKEN:-sk-live0123456789ABCDEFabcdef}": true, "Bearer ${API_TOKEN:-hunter22}": true,
	} {
		if got := Hides("API_TOKEN", value); got != want {
			t.Errorf("Hides(API_TOKEN, %q) = %v, want %v", value, got, want)
		}
	}
}
