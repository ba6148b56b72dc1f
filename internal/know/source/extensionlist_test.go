package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/know/source/lists"
	"ken/internal/testkit/sourcetest"
)

func TestExtensionListAvailability(t *testing.T) {
	const text = `extensions:
  - name: giphy
    displayName: Giphy
    description: Find animated GIFs.
    category: media
    tags: [gif]
    available: false
    requiredSecrets: [GIPHY_API_KEY]
    homepage: https://giphy.example
  - {name: ready, description: Is installed., available: true}
  - {name: silent, description: Says nothing.}
  - {name: odd, description: Says it wrongly., available: soon}
  - 7
`
	dir := t.TempDir()
	sourcetest.Write(t, dir, "extensions.yaml", text)
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	want := map[capability.ID]string{
		"extension:giphy": lists.NotInstalled, "extension:ready": "", "extension:silent": lists.NotInstalled, "extension:odd": lists.NotInstalled,
	}
	got := map[capability.ID]string{}
	for _, c := range b.Capabilities {
		got[c.ID] = c.Unavailable
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("why each is unavailable (-want +got):\n%s", diff)
	}
	giphy := capabilityByID(t, b, "extension:giphy")
	if giphy.Kind != capability.KindExtension || giphy.Category != "media" || giphy.Meta["homepage"] != "https://giphy.example" || giphy.RequiredSecrets[0] != "GIPHY_API_KEY" {
		t.Errorf("giphy = %+v", giphy)
	}
	if got, want := lineCodes(b), "12 bad-value, 13 bad-entry"; got != want {
		t.Errorf("problems = %q, want %q", got, want)
	}
}

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
