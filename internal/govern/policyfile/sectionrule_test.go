package policyfile_test

import (
	"strings"
	"testing"

	"ken/internal/govern/policyfile"
)

// TestEmptyListIsRefused: a rule with an empty list would be about everything. The one
// that allows would let every agent do everything unasked.
func TestEmptyListIsRefused(t *testing.T) {
	for _, key := range []string{"capabilities", "paths", "agents", "roles", "argv", "hosts", "effects", "intents", "origins", "surfaces", "trust", "kinds"} {
		for _, value := range []string{`[]`, `[""]`, `null`, `""`} {
			fields := map[string]string{"agents": `["claude"]`, "capabilities": `["tool:*"]`}
			fields[key] = value
			file := `{"rules": [{"id": "all", "effect": "allow"`
			for name, value := range fields {
				file += `, "` + name + `": ` + value
			}
			file += "}]}"
			_, err := policyfile.ParseClientRules("rules.json", []byte(file), func(string) bool { return true })
			if err == nil || !strings.Contains(err.Error(), "rule all: "+key+" is empty") {
				t.Errorf("%s: %s = %v, want a refusal", key, value, err)
			}
		}
	}
}
