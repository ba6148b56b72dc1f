package pin_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"ken/internal/govern/pin"
)

func TestDifferences(t *testing.T) {
	tests := []struct {
		name   string
		change func(*pin.Tool)
		want   string
	}{
		{"title", func(t *pin.Tool) { t.Title = "Look" }, "title changed: now Look, was Read a file"},
		{"description", func(t *pin.Tool) { t.Description = "" }, "description removed: Reads a file of the workspace."},
		{
			"property added", func(t *pin.Tool) {
				t.Input = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"to":{"type":"string"}},"required":["path","to"]}`)
			},
			"input.properties.to added: {\"type\":\"string\"}\ninput.required changed: now [\"path\",\"to\"], was [\"path\"]",
		},
		{
			"property removed", func(t *pin.Tool) { t.Output = json.RawMessage(`{"type":"object","properties":{}}`) },
			`output.properties.text removed: {"type":"string"}`,
		},
		{
			"property changed", func(t *pin.Tool) {
				t.Input = json.RawMessage(`{"type":"object","properties":{"path":{"type":"integer"}},"required":["path"]}`)
			},
			`input.properties.path.type changed: now "integer", was "string"`,
		},
		{"annotation", func(t *pin.Tool) { t.Annotations = json.RawMessage(`{"readOnlyHint":false}`) }, "annotations.readOnlyHint changed: now false, was true"},
		{"no annotations", func(t *pin.Tool) { t.Annotations = nil }, `annotations removed: {"readOnlyHint":true}`},
		{"metadata", func(t *pin.Tool) { t.Extra = json.RawMessage(`{"_meta":{"ui":{"resourceUri":"ui://x"}}}`) }, `for clients added: {"_meta":{"ui":{"resourceUri":"ui://x"}}}`},
		{"a blank", func(t *pin.Tool) { t.Description = "Reads  a file of the workspace." }, `description changed in invisible characters: now "Reads \x20a file of the workspace.", was "Reads a file of the workspace."`},
		{"escape", func(t *pin.Tool) { t.Title = "\x1b[2JRead a file" }, "title changed: now ⟨U+001B⟩[2JRead a file, was Read a file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := anyDesk(t, pin.Config{})
			tool := readFile()
			check(t, d, "s", tool)
			test.change(&tool)
			v := check(t, d, "s", tool)["read_file"]
			waiting, err := d.Pending(ctx, "s")
			if err != nil || len(waiting) != 1 {
				t.Fatalf("Pending = %v, %v, want one", waiting, err)
			}
			w := waiting[0]
			if w.Hash != v.Hash || w.State != pin.Changed || w.Tool != "read_file" {
				t.Errorf("Pending = %+v, want the hash %s", w, v.Hash)
			}
			if got := lines(w.Differences); got != test.want {
				t.Errorf("differences:\n%s\nwant\n%s", got, test.want)
			}
			if doc, err := json.Marshal(w); err != nil || !strings.Contains(string(doc), `"state":"changed"`) {
				t.Errorf("as JSON = %s, %v, want the state as a word", doc, err)
			}
			if v.Diff == "" || utf8.RuneCountInString(v.Diff) > 260 || strings.ContainsAny(v.Diff, "\n\x1b") {
				t.Errorf("Diff = %q, want one short line", v.Diff)
			}
		})
	}
}
