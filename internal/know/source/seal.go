package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/schema"
	"ken/internal/untrusted"
)

// seal completes a capability: defaults, parameters from the schema, the hash
// over all that a model may see, and the findings of the text scan. Every
// format ends here, so none can forget the scan. What is part of the program is
// scanned once, by its tests, and not at every start.
func seal(c *capability.Capability, d capability.Detail) {
	if c.ID == "" {
		c.ID = capability.MakeID(c.Kind, c.Name)
	}
	normalize(c)
	if c.Category == "" {
		c.Category = "general"
	}
	own := c.Parameters // said beside the schema, so not part of its text
	if own == nil {
		c.Parameters = parametersOf(d.Schema)
	}
	boundLists(c)
	if c.Trust != capability.TrustBuiltin && c.Run != nil && c.Unavailable == "" {
		c.Unavailable = schemaFault(c, d.Schema)
	}
	c.Hash = hashOf(c, d)
	if c.Trust != capability.TrustBuiltin {
		c.Findings = append(c.Findings, scan(c, d, own)...)
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
	maxList       = 256
	maxParameters = 1024
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
		if n := len(*l.list); n > maxList {
			*l.list = slices.Clone((*l.list)[:maxList]) // the rest can go
			note(l.field, n, maxList)
		}
	}
	if n := len(c.Parameters); n > maxParameters {
		c.Parameters = slices.Clone(c.Parameters[:maxParameters])
		note("parameters", n, maxParameters)
	}
}

// hashOf covers everything that a source says of a capability: all that a model
// may see, and all that decides how a call runs. Where it came from is not
// part of it. The order is part of the format: a change of it is a new version.
func hashOf(c *capability.Capability, d capability.Detail) string {
	text := make([]byte, 0, 1024+len(c.Description)+len(d.Schema)+len(d.Body)+len(d.Usage))
	put := func(parts ...string) {
		for _, s := range parts {
			// The length before each part keeps neighbours apart.
			text = append(strconv.AppendInt(text, int64(len(s)), 10), ':')
			text = append(text, s...)
		}
		text = append(text, '\n')
	}
	put("ken.capability.v1", string(c.ID), string(c.Kind), c.Name, c.DisplayName, c.Description, c.Category)
	put(c.Tags...)
	put(c.Aliases...)
	put(c.RequiredTools...)
	put(c.RequiredBins...)
	put(c.RequiredSecrets...)
	put(c.RequiredPlatforms...)
	put(c.Permissions...)
	put(c.Unavailable, c.Version, strconv.Itoa(c.Priority), strconv.Itoa(c.TokenBudget), strconv.Itoa(c.MaxChars))
	for _, m := range c.Migrations {
		put(m.From, m.To, m.Note)
	}
	if c.Triggers != nil {
		triggers, _ := json.Marshal(c.Triggers) // plain data cannot fail
		put(string(triggers))
	}
	for _, p := range c.Parameters {
		put(p.Name, p.Type, p.Description, strconv.FormatBool(p.Required))
	}
	e := c.Said()
	text = append(text, '0'+byte(e.ReadOnly), '0'+byte(e.Destructive), '0'+byte(e.Idempotent), '0'+byte(e.OpenWorld), '\n')
	if c.Run != nil {
		recipe, _ := json.Marshal(c.Run) // plain data cannot fail
		put(string(recipe))
	}
	put(string(d.Schema), d.Body, d.Usage)
	// Some of it decides how a call runs: where an argument goes, which files
	// come with a skill.
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		put(key, c.Meta[key])
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// findingsIn says where what the scan found was found.
func findingsIn(field string, found []untrusted.Finding) []capability.Finding {
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
		b.WriteString(p.Name + apart + p.Type + apart + p.Description + apart)
	}
	return b.String()
}
