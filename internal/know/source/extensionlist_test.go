package source

import (
	"testing"

	"ken/internal/know/source/lists"
)

// TestExtensionListOfOthers: editors keep a file of the same name.
func TestExtensionListOfOthers(t *testing.T) {
	tests := []struct {
		file, text string
		want       bool
	}{
		{"extensions.json", `{"recommendations":["golang.go"]}`, false},
		{"extensions.json", `{"extensions":[]}`, true},
		{"extensions.json", ` [{"name":"a"}]`, true},
		{"extensions.yaml", "# ours\nextensions:\n- {name: a}\n", true},
		{"extensions.yaml", "- name: a\n", true},
		{"extensions.txt", "extensions:\n", false},
		{"my-extensions.yaml", "extensions:\n", false},
	}
	for _, tt := range tests {
		if got := lists.ExtensionListFormat().Claims("dir/"+tt.file, []byte(tt.text)); got != tt.want {
			t.Errorf("isExtensionList(%s, %q) = %v, want %v", tt.file, tt.text, got, tt.want)
		}
	}
}
