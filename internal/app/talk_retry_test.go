package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/internal/talk/event"
	"ken/llm/llmtest"
)

// TestRetriesReachTheTurn: that a provider of ken.yaml is asked again later is
// told in the turn, with how long that takes.
func TestRetriesReachTheTurn(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			server := llmtest.Serve(t, w, llmtest.Replies(llmtest.Reply{Fault: llmtest.Rate, RetryAfter: time.Second}, llmtest.Reply{Text: "Hello."}))
			dir, getenv := home(t, nil)
			write(t, filepath.Join(dir, ".ken", "ken.yaml"), "model: lab/m\nproviders: {lab: {wire: "+string(w)+", url: '"+server.URL()+"', key: LAB_KEY}}\n")
			events := say(t, open(t, Config{Getenv: getenv, environment: func() []string { return []string{"LAB_KEY=k"} }, Dir: t.TempDir()}), "hello")
			var told []string
			for _, ev := range events {
				if n, ok := ev.(event.Notice); ok && n.Name == "retry" {
					told = append(told, n.Text)
				}
			}
			if len(told) != 1 || !strings.Contains(told[0], "again in 1.0 s") {
				t.Errorf("notices of retries = %q, want one with its seconds", told)
			}
			if done, ok := events[len(events)-1].(event.Done); !ok || done.Reason != event.EndAnswer || done.Text != "Hello." {
				t.Errorf("the turn ended with %+v", events[len(events)-1])
			}
		})
	}
}
