package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

// seal completes a capability: defaults, parameters from the schema, the hash
// over all that a model may see, and the findings of the text scan. Every
// format ends here, so none can forget the scan.
func seal(c *capability.Capability, d capability.Detail) {
	if c.ID == "" {
		c.ID = capability.MakeID(c.Kind, c.Name)
	}
	if c.Category == "" {
		c.Category = "general"
	}
	if c.Parameters == nil {
		c.Parameters = parametersOf(d.Schema)
	}
	c.Hash = hashOf(c, d)
	c.Findings = append(c.Findings, scan(c, d)...)
}

// hashOf covers everything that a model may see or that decides how a call
// runs. The order is part of the format: a change of it is a new version.
func hashOf(c *capability.Capability, d capability.Detail) string {
	h := sha256.New()
	put := func(parts ...string) {
		for _, s := range parts {
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
		h.Write([]byte{'\n'})
	}
	put("ken.capability.v1", string(c.ID), string(c.Kind), c.Name, c.DisplayName, c.Description, c.Category)
	put(c.Tags...)
	put(c.Aliases...)
	put(c.RequiredTools...)
	put(c.Permissions...)
	if c.Run != nil {
		recipe, _ := json.Marshal(c.Run) // plain data cannot fail
		put(string(recipe))
	}
	put(string(d.Schema), d.Body, d.Usage)
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// scan looks at every text of the capability that could reach a prompt.
func scan(c *capability.Capability, d capability.Detail) []capability.Finding {
	var out []capability.Finding
	note := func(field string, found []untrusted.Finding) {
		for _, f := range found {
			severity := capability.Warning
			if f.Severity == untrusted.Hard {
				severity = capability.Grave
			}
			out = append(out, capability.Finding{
				Rule: f.Rule, Severity: severity, Field: field, Line: f.Line, Excerpt: f.Excerpt,
			})
		}
	}
	note("name", untrusted.NameFindings(c.Name))
	note("description", untrusted.Scan(c.Description))
	short := strings.Join([]string{c.DisplayName, c.Category, strings.Join(c.Tags, "\n"), strings.Join(c.Aliases, "\n")}, "\n")
	note("labels", untrusted.Scan(short))
	if len(d.Schema) > 0 {
		note("schema", untrusted.Scan(schemaText(d.Schema)))
	}
	note("body", untrusted.Scan(d.Body))
	note("usage", untrusted.Scan(d.Usage))
	return out
}
