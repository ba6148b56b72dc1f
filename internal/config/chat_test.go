package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestLoadReadsEveryKeyOfChat: what is said about models and conversations
// arrives (S4.05, S3.U01, S3.U04, C19, C20, C33).
func TestLoadReadsEveryKeyOfChat(t *testing.T) {
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	write(t, file, read(t, "testdata/chat.yaml"))
	got, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Model = "lab/qwen3:8b"
	want.Providers = []Provider{
		{Name: "anthropic", Key: "my-claude", CondenseAt: -1},
		{Name: "lab", Wire: WireChat, URL: "http://127.0.0.1:8000/v1", Key: "LAB_KEY", Headers: map[string]string{"X-Team": "${env:TEAM}"}, CondenseAt: 60},
	}
	want.Chat = Chat{
		CondenseModel: "ollama/small", Effort: "low", MaxTokens: 4000, ModelTable: filepath.Join(places.Home, "models.yaml"), ToolDelivery: "bridge",
		CondenseAt: 80, PromptTokens: 3000, IntentScope: IntentRequest, RememberIntents: true, Escalation: EscalationAsk, ToolFailure: FailClosed,
		Steps: 9, Mistakes: 2, Repeats: 4, Calls: 20, Rounds: 2, Parallel: 1, Requests: 5, Tokens: 100_000, Cost: 0.5,
		AnswerBytes: 1 << 20, ResultBytes: 20 << 10, InputBytes: 2 << 20, MessageBytes: 64 << 10, Keep: 24 * time.Hour, Memory: true,
	}
	want.Skills = Skills{Always: []string{"shell"}, Off: []string{"skill:old"}}
	want.Hooks = []Hook{
		{Name: "lint", Command: []string{"./check.sh", "-v"}, Dir: places.Home, Tools: []string{"write_to_file"}, Timeout: 3 * time.Second},
		{Name: "all", Command: []string{"true"}, Dir: places.Home},
	}
	want.Trace = Trace{OTLP: "http://127.0.0.1:4318", Orchestration: OrchestrationOff}
	if !reflect.DeepEqual(bare(got), bare(want)) {
		t.Errorf("Load = %+v\nwant %+v", bare(got), bare(want))
	}
	for _, s := range got.Settings() {
		section, _, _ := strings.Cut(s.Key, ".")
		switch section {
		case "model", "providers", "chat", "skills", "hooks", "trace":
			if !strings.HasPrefix(s.Origin, file+":") {
				t.Errorf("%s has origin %s, want a line of %s", s.Key, s.Origin, file)
			}
		}
	}
}

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
