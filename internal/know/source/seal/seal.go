package seal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
	"ken/internal/schema"
	"ken/internal/untrusted"
)

// Seal completes a capability: defaults, parameters from the schema, the hash
// over all that a model may see, and the findings of the text scan. Every
// format ends here, so none can forget the scan. What is part of the program is
// scanned once, by its tests, and not at every start.
func Seal(c *capability.Capability, d capability.Detail) { (*Sealer)(nil).Seal(c, d) }

// Seal is [Seal] by a sealer.
func (s *Sealer) Seal(c *capability.Capability, d capability.Detail) {
	if c.ID == "" {
		c.ID = capability.MakeID(c.Kind, c.Name)
	}
	normalize(c)
	if c.Category == "" {
		c.Category = "general"
	}
	own := c.Parameters // said beside the schema, so not part of its text
	if own == nil {
		c.Parameters = s.parameters(d.Schema)
	}
	boundLists(c)
	if c.Trust != capability.TrustBuiltin && c.Run != nil && c.Unavailable == "" {
		c.Unavailable = schemaFault(c, d.Schema)
	}
	c.Hash = hash(c, d)
	if c.Trust != capability.TrustBuiltin {
		c.Findings = append(c.Findings, s.scan(c, d, own)...)
	}
}

// normalize puts the names of a capability into Unicode normalization form C, so
// that an id is the same however its source, a setting or a caller spells it.
func normalize(c *capability.Capability) {
	c.ID, c.Name = capability.ID(norm.NFC.String(string(c.ID))), norm.NFC.String(c.Name)
	for _, list := range []*[]string{&c.Aliases, &c.RequiredTools} {
		if slices.ContainsFunc(*list, func(s string) bool { return !norm.NFC.IsNormalString(s) }) {
			*list = slices.Clone(*list) // the caller may share it
			for i, s := range *list {
				(*list)[i] = norm.NFC.String(s)
			}
		}
	}
}

// schemaFault says why no arguments can be held to a schema, or nothing. What
// cannot be checked is not run.
func schemaFault(c *capability.Capability, raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	err := schema.Check(raw)
	switch {
	case err == nil:
		return ""
	case c.Origin.Format == FormatMCP:
		return "the input schema that the server " + c.Category + " sent cannot be used: " + err.Error()
	}
	return "its input schema cannot be used: " + err.Error()
}

// Lists that are longer than anybody writes are cut, visibly: every list is
// walked again at each change of the catalog.
const (
	MaxList       = 256
	MaxParameters = 1024
)

func boundLists(c *capability.Capability) {
	note := func(field string, had, kept int) {
		c.Findings = append(c.Findings, capability.Finding{
			Rule: "long-list", Severity: capability.Warning, Field: field,
			Excerpt: fmt.Sprintf("%d items; the first %d are used", had, kept),
		})
	}
	for _, l := range []struct {
		field string
		list  *[]string
	}{
		{"tags", &c.Tags}, {"aliases", &c.Aliases}, {"requiredTools", &c.RequiredTools}, {"requiredSecrets", &c.RequiredSecrets},
		{"requiredBins", &c.RequiredBins}, {"requiredPlatforms", &c.RequiredPlatforms}, {"permissions", &c.Permissions},
	} {
		if n := len(*l.list); n > MaxList {
			*l.list = slices.Clone((*l.list)[:MaxList]) // the rest can go
			note(l.field, n, MaxList)
		}
	}
	if n := len(c.Parameters); n > MaxParameters {
		c.Parameters = slices.Clone(c.Parameters[:MaxParameters])
		note("parameters", n, MaxParameters)
	}
}

// Findings says where what the scan found was found.
func Findings(field string, found []untrusted.Finding) []capability.Finding {
	var out []capability.Finding
	for _, f := range found {
		severity := capability.Warning
		if f.Severity == untrusted.Hard {
			severity = capability.Grave
		}
		out = append(out, capability.Finding{
			Rule: f.Rule, Severity: severity, Field: field, Line: f.Line, Excerpt: f.Excerpt,
		})
	}
	return out
}

func parameterText(params []capability.Parameter) string {
	var b strings.Builder
	for _, p := range params {
		b.WriteString(p.Name + jsonscan.TextSeparator + p.Type + jsonscan.TextSeparator + p.Description + jsonscan.TextSeparator)
	}
	return b.String()
}

// FormatMCP is [capability.Origin.Format] of what a connected server brought.
const FormatMCP = "mcp"
