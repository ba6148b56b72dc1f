package detect

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

func TestReplace(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"GITHUB_TOKEN", "abc", "<GITHUB_TOKEN=abc>"},
		{"githubToken", "abc", "<githubToken=abc>"},
		{"x-api-key", "abc", "<x-api-key=abc>"},
		{"Authorization", "Bearer abc", "Bearer <Authorization=abc>"},
		{"Authorization", "Basic YTpi", "Basic <Authorization=YTpi>"},
		{"Authorization", "abcdef", "<Authorization=abcdef>"},
		{"Cookie", "sid=abcdef", "<Cookie=sid=abcdef>"},
		{"DB_PASSWORD", "x", "<DB_PASSWORD=x>"},
		{"SOME_KEY", "longerthan8", "<SOME_KEY=longerthan8>"},
		{"SOME_KEY", "short", "short"},
		{"MAX_TOKENS", "100000", "100000"},
		{"TOKEN_LIMIT", "100000", "100000"},
		{"AUTH_MODE", "oauth", "oauth"},
		{"GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json", "/home/me/key.json"},
		{"SECRET", "true", "true"},
		{"KEYBOARD", "qwertyuiop", "qwertyuiop"},
		{"", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "<=ghp_abcdefghijklmnopqrstuvwxyz0123456789>"},
		{"X", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "<X=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc>"},
		{"X", "0123456789abcdef0123456789abcdef", "<X=0123456789abcdef0123456789abcdef>"},
		{"X", "Zx9Kq2Lm8Vb4Nt7Rw1Yp5Hd3Gs6Jf0Cu", "<X=Zx9Kq2Lm8Vb4Nt7Rw1Yp5Hd3Gs6Jf0Cu>"},
		{"", "@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-filesystem"},
		{"", "--allowed-directories-for-this-server", "--allowed-directories-for-this-server"},
		{"", "--api-key=abc", "--api-key=<api-key=abc>"},
		{"api-key", "abc", "<api-key=abc>"},
		{"header", "Authorization: Bearer abc", "Authorization: Bearer <Authorization=abc>"},
		{"e", "GITHUB_TOKEN=abc", "GITHUB_TOKEN=<GITHUB_TOKEN=abc>"},
		{"", "postgres://bob:pw@db/x", "postgres://bob:<url=pw>@db/x"},
		{"DATABASE_URL", "postgres://bob:pw@db/x", "postgres://bob:<DATABASE_URL=pw>@db/x"},
		{"", "https://x.example/mcp?api_key=abc&q=1", "https://x.example/mcp?api_key=<api_key=abc>&q=1"},
		{"", "https://x.example/mcp?q=1", "https://x.example/mcp?q=1"},
		{"config", `{"apiKey":"abc","n":"1"}`, `{"apiKey":"<apiKey=abc>","n":"1"}`},
		{"X", "a ${b} c", "a ${b} c"},
		{"", "", ""},
	}
	for _, test := range tests {
		got := Replace(test.name, test.value, func(key, value string) string { return "<" + key + "=" + value + ">" })
		if got != test.want {
			t.Errorf("Replace(%q, %q) = %q, want %q", test.name, test.value, got, test.want)
		}
	}
}
