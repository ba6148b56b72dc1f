package seal

import (
	"strings"
	"testing"

	"ken/capability"
)

func TestCredentialsInCardsAreNoticedAndNotRepeated(t *testing.T) {
	secret := "ghp_" + strings.Repeat("a1B2", 10)
	tests := []struct {
		name, text string
		line       int // 0: none
	}{
		{"token", "First.\nUse " + secret + " to log in.", 2},
		{"key", "key: sk-proj-" + strings.Repeat("x", 30), 1},
		{"address", "postgres://me:hunter2@db.example/x", 1},
		{"private key", "a\n\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc", 3},
		{"placeholders", "Use $GITHUB_TOKEN, sk-..., ghp_xxx, postgres://<user>:<password>@host, https://example.org:8080/a@b", 0},
		{"newer form", "Set gsk_" + strings.Repeat("Ab3", 12), 1},
		{"names", "Install sk-learn-pipeline-builder, then fc-list-all-of-the-fonts-here.", 0},
		{"prose", "The AI asks Google; AKI and ASIA are places.", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &capability.Capability{Kind: capability.KindCard, Name: "x"}
			Seal(c, capability.Detail{Body: tt.text})
			var got []capability.Finding
			for _, f := range c.Findings {
				if f.Rule == "credential" {
					got = append(got, f)
				}
			}
			if tt.line == 0 {
				if len(got) > 0 {
					t.Errorf("findings = %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Line != tt.line || got[0].Severity != capability.Warning {
				t.Fatalf("findings = %v, want one warning on line %d", got, tt.line)
			}
			if strings.Contains(got[0].Excerpt, secret) {
				t.Errorf("the excerpt repeats the secret: %q", got[0].Excerpt)
			}
		})
	}
}
