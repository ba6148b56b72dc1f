package redaction_test

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/redaction"
	"ken/internal/secret"
)

// TestRedactor: a secret that was set is known to the next text.
func TestRedactor(t *testing.T) {
	secrets := secret.New(secret.Config{Dir: t.TempDir(), Environ: []string{"USER_TOKEN=joe", "API_TOKEN=variable-9f8e7d6c"}})
	r := redaction.New(secrets)
	const value = "sealed-1a2b3c4d"
	if got := r.Redact("x " + value); !strings.Contains(got, value) {
		t.Errorf("before it was set: %q", got)
	}
	if err := secrets.Set("KEY", secret.Of(value)); err != nil {
		t.Fatal(err)
	}
	if got := r.Redact("x " + value); strings.Contains(got, value) {
		t.Errorf("after it was set: %q", got)
	}
	if got, ok := r.Lookup("KEY"); got != value || !ok {
		t.Errorf("Lookup = %q, %v", got, ok)
	}
	if _, ok := r.Lookup("NONE"); ok {
		t.Error("Lookup finds what is not there")
	}
	for text, name := range map[string]string{"give " + value: "KEY", "give variable-9f8e7d6c": "API_TOKEN", "for joe": "", "plain": ""} {
		err := r.Check("complete", "server", "first", text)
		if name == "" && err != nil || name != "" && (capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), name)) {
			t.Errorf("Check of %q = %v, want a denial for %q", text, err, name)
		}
	}
	r.HoldTokens([]secret.Value{secret.Of("token-5e6f7a8b")})
	if err := r.Check("complete", "server", "token-5e6f7a8b"); err == nil || !strings.Contains(err.Error(), "token of ken serve") {
		t.Errorf("Check of a token = %v", err)
	}
}
