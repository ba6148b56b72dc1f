package source

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
)

// TestOperationClaims: a GET that is named like a change is not read-only.
func TestOperationClaims(t *testing.T) {
	dir := t.TempDir()
	doc := `{"openapi":"3.1.0","info":{"title":"Pets","version":"1"},"servers":[{"url":"https://pets.example"}],"paths":{` +
		`"/all":{"get":{"operationId":"deleteAll"}},"/pets":{"get":{"operationId":"listPets"}},"/pets/remove":{"get":{}}}}`
	if err := os.WriteFile(filepath.Join(dir, "pets.json"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	_, b := load(t, TreeConfig{Path: filepath.Join(dir, "pets.json"), Trust: capability.TrustUser})
	got := map[string]bool{}
	for _, c := range b.Capabilities {
		got[c.Name] = c.Effects.ReadOnly == capability.Yes && c.Effects.Idempotent == capability.Yes && c.Claims == nil
	}
	if want := map[string]bool{"deleteAll": false, "listPets": true, "get_pets_remove": false}; !maps.Equal(got, want) {
		t.Errorf("read-only are %v, want %v", got, want)
	}
}
