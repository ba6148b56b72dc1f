package config

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func compiledSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var root jsonschema.Schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// asJSON returns YAML as an editor sees it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	root, err := parse("ken.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(plainValue(root))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// allowedBySchema fails the test if the schema does not allow a file that Ken
// takes.
func allowedBySchema(t *testing.T, file string) {
	t.Helper()
	if err := compiledSchema(t).Validate(asJSON(t, read(t, file))); err != nil {
		t.Errorf("the schema does not allow it: %v", err)
	}
}

// TestSchemaAgreesWithReader checks that the schema for editors allows what Ken
// takes, and refuses what a person most often gets wrong.
func TestSchemaAgreesWithReader(t *testing.T) {
	t.Parallel()
	compiled := compiledSchema(t)
	sample := string(Sample())
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	tests := []struct {
		name, yaml string
		fine       bool
	}{
		{"nothing", "{}", true},
		{"the sample of ken init", sample, true},
		{"every key with its default", keyLine.ReplaceAllString(sample, "$1$2"), true},
		{"a word of a list", "discovery: {profile: lean}", true},
		{"a limit that is none", "sandbox: {output: none}", true},
		{"a server", "mcp: {servers: {files: {command: npx, args: [-y, server-files], timeout: 5s}}}", true},
		{"a source", "catalog: {sources: [{name: team, path: ~/team}]}", true},
		{"a database", "databases: {shop: {engine: sqlite, path: shop.db}}", true},
		{"rules", "policy: {profile: team, rules: [{id: no-push, effect: deny, argv: [git push]}]}", true},

		{"an unknown section", "capability: {enabled: true}", false},
		{"an unknown key", "capabilities: {maxToken: 900}", false},
		{"a wrong type", "capabilities: {enabled: 'yes'}", false},
		{"an unknown word", "discovery: {profile: leen}", false},
		{"out of range", "discovery: {tier1TopK: 100000}", false},
		{"an unknown key of a server", "mcp: {servers: {files: {comand: npx}}}", false},
		{"a list that is none", "capabilities: {exclude: tool:x}", false},
	}
	for _, tt := range tests {
		write(t, file, tt.yaml)
		_, errOfKen := Load(places, "")
		if (errOfKen == nil) != tt.fine {
			t.Errorf("%s: Ken says %v, want fine: %v", tt.name, errOfKen, tt.fine)
		}
		if err := compiled.Validate(asJSON(t, tt.yaml)); (err == nil) != tt.fine {
			t.Errorf("%s: the schema says %v, want fine: %v", tt.name, err, tt.fine)
		}
	}
}
