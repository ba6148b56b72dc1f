package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestS405ProviderByOneLine: the one key that says which model, says where it
// is; what a file adds is laid over what is known.
func TestS405ProviderByOneLine(t *testing.T) {
	c := Default()
	c.Providers = []Provider{
		{Name: "anthropic", Key: "my-claude", CondenseAt: -1},
		{Name: "openai", URL: "http://127.0.0.1:9/v1", CondenseAt: -1},
		{Name: "lab", URL: "http://127.0.0.1:8/v1", CondenseAt: 60},
	}
	tests := []struct {
		model string
		want  Provider
		name  string
	}{
		{"anthropic/claude", Provider{Name: "anthropic", Wire: WireMessages, URL: "https://api.anthropic.com", Key: "my-claude", CondenseAt: -1}, "claude"},
		{"openai/gpt", Provider{Name: "openai", Wire: WireResponses, URL: "http://127.0.0.1:9/v1", CondenseAt: -1}, "gpt"},
		{"gemini/flash", Provider{Name: "gemini", Wire: WireGemini, URL: "https://generativelanguage.googleapis.com", Key: "GEMINI_API_KEY", CondenseAt: -1}, "flash"},
		{"openrouter/a/b", Provider{Name: "openrouter", Wire: WireChat, URL: "https://openrouter.ai/api/v1", Key: "OPENROUTER_API_KEY", CondenseAt: -1}, "a/b"},
		{"lab/x:y", Provider{Name: "lab", Wire: WireChat, URL: "http://127.0.0.1:8/v1", CondenseAt: 60}, "x:y"},
	}
	for _, tt := range tests {
		if got, name, err := c.Provider(tt.model); err != nil || !reflect.DeepEqual(got, tt.want) || name != tt.name {
			t.Errorf("Provider(%q) = %+v, %q, %v; want %+v, %q", tt.model, got, name, err, tt.want, tt.name)
		}
	}
	for model, want := range map[string]string{"": "no provider", "gpt": "anthropic/NAME", "nobody/x": "the providers are anthropic,", "/x": "no provider", "openai/": "no provider"} {
		if _, _, err := c.Provider(model); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Provider(%q) = %v, want %q in it", model, err, want)
		}
	}
}
