package mcpgateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/know/source/mcpskill"
	"ken/internal/know/source/seal"
	"ken/internal/untrusted"
)

// Skills of servers (SEP-2640). Each is a capability that reads it, so rules,
// approval and records are those of a call. The capability has the digests of all
// files, so a skill that changes is reviewed like a changed tool. Files are read
// when they are used, and refused if they are not what the entry says.

const skillPrefix = "skill_"

// sortedSkills returns skills in an order that does not depend on the server.
func sortedSkills(list []*mcpskill.Entry) []*mcpskill.Entry {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b *mcpskill.Entry) int { return strings.Compare(a.URI, b.URI) })
	return out
}

// skillTool names the capability of a skill. If the name is taken, a part of a hash
// of the address tells them apart.
func skillTool(e *mcpskill.Entry, taken map[string]string) string {
	name := skillPrefix + e.Name()
	if taken[name] != "" {
		sum := sha256.Sum256([]byte(e.URI))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// mostNamedFiles is how many files the definition of a skill names. The digest of
// the entry covers the others too.
const mostNamedFiles = 64

// skillObject describes a skill as tools/list describes a tool. Everything that a
// person accepts is in it, for the scan and for the pins.
func skillObject(name, server string, e *mcpskill.Entry) ([]byte, error) {
	digests := map[string]string{}
	for _, f := range e.Resources[:min(len(e.Resources), mostNamedFiles)] {
		digests[strings.TrimPrefix(f.URI, e.Dir()+"/")] = f.Digest
	}
	file := map[string]any{"type": "string", "description": "A file of the skill instead of its instructions"}
	if paths := e.Paths(); len(paths) > 0 && len(paths) <= mostNamedFiles {
		file["enum"] = paths
	}
	return json.Marshal(map[string]any{
		"name": name, "title": "Skill " + e.Name(),
		"description": fmt.Sprintf("Reads the skill %s of the MCP server %s. What the server says of it: %s", e.Name(), server, e.Description()),
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"file": file}, "additionalProperties": false},
		"annotations": map[string]any{"readOnlyHint": true},
		"_meta": map[string]any{"ken/skill": map[string]any{
			"uri": e.URI, "frontmatter": e.Frontmatter, "digest": e.Sum(), "count": len(e.Resources), "files": digests,
		}},
	})
}

// A Skill is a skill of a server that was accepted.
type Skill struct {
	*mcpskill.Entry
	Read capability.ID // the capability that reads it
}

// accepted returns the skills of an offer that no pin bars, by address.
func (o *offer) accepted() (out []Skill) {
	for id, e := range o.skills {
		if entry := o.entries[id]; entry != nil && entry.barred == "" && !grave(entry.Capability) {
			out = append(out, Skill{Entry: e, Read: id})
		}
	}
	coldsort.By(out, func(a, b Skill) int { return cmp.Compare(a.URI, b.URI) })
	return out
}

func grave(c *capability.Capability) bool {
	return slices.ContainsFunc(c.Findings, func(f capability.Finding) bool { return f.Severity == capability.Grave })
}

// within reports whether an address is in the folder of a skill.
func within(e *mcpskill.Entry, uri string) bool { return strings.HasPrefix(uri, e.Dir()+"/") }

// skillFile finds the skill that a resource is a file of; nil if it is none of any.
// A file of a skill that is in quarantine, or that no skill lists, is an error.
func (s *server) skillFile(call capability.Call, uri string) (*mcpskill.Entry, error) {
	o := s.offered()
	if o == nil {
		return nil, nil
	}
	held := false
	for _, e := range o.skills {
		held = held || within(e, uri)
	}
	if !held {
		return nil, nil
	}
	quarantined := true
	for _, sk := range o.accepted() {
		if !within(sk.Entry, uri) {
			continue
		}
		quarantined = false
		if _, ok := sk.Find(uri); ok {
			return sk.Entry, nil
		}
	}
	out := &capability.Error{Kind: capability.Conflict, Op: "call", Target: string(call.Target), Fix: "ken extension review mcp:" + s.def.Name}
	out.Err = fmt.Errorf("%s is not a file that its skill lists", show(uri))
	if quarantined {
		out.Rule, out.Err = ruleChanged, fmt.Errorf("%s is a file of a skill that is in quarantine", show(uri))
	}
	return nil, out
}

// ruleDigest is the rule that refuses a file of a skill that is not what its entry
// says, and ruleSkillText the rule that refuses one with a text that is dangerous.
const (
	ruleDigest    = "mcp.skill.digest"
	ruleSkillText = "mcp.skill.text"
)

// verified checks what a server returned for a file of a skill.
func (b *backend) verified(call capability.Call, e *mcpskill.Entry, uri string, res *capability.Result) error {
	refused := func(rule string, err error, fix string) error {
		return &capability.Error{
			Kind: capability.Conflict, Op: "read the skill " + e.Name(), Target: string(call.Target), Rule: rule, Err: err, Fix: fix,
		}
	}
	if len(res.Parts) != 1 {
		return refused(ruleDigest, fmt.Errorf("the server returned %d contents for %s, not one", len(res.Parts), show(uri)), "tell its author")
	}
	data := res.Parts[0].Data
	if data == nil {
		data = []byte(res.Parts[0].Text)
	}
	if err := e.Verify(uri, data); err != nil {
		b.changed(quiet) // perhaps the skill is a newer one; then its entry is reviewed
		return refused(ruleDigest, err, "Ken lists the server again; if the skill has changed, run ken extension review mcp:"+b.s.def.Name)
	}
	for _, f := range seal.Findings("text", seal.ScanText(string(data))) {
		if f.Severity == capability.Grave && utf8.Valid(data) {
			return refused(ruleSkillText, fmt.Errorf("%s: %s: %s", show(uri), f.Rule, f.Excerpt), "tell its author")
		}
	}
	return nil
}

// skillAddress returns the address of the file that a call of a skill reads.
func skillAddress(call capability.Call, e *mcpskill.Entry) (string, error) {
	var in struct {
		File string `json:"file"`
	}
	if len(call.Arguments) > 0 {
		if err := decode(call, &in); err != nil {
			return "", err
		}
	}
	uri := e.URI
	if in.File != "" {
		uri = e.Dir() + "/" + in.File
	}
	if _, ok := e.Find(uri); !ok {
		return "", &capability.Error{
			Kind: capability.Invalid, Op: "read the skill " + e.Name(), Target: string(call.Target),
			Err: fmt.Errorf("%s is not a file that the skill lists", show(in.File)), Fix: "use one of: " + strings.Join(e.Paths(), ", "),
		}
	}
	return uri, nil
}

// fenceSkill marks a text of a skill as the server's, for models.
func (s *server) fenceSkill(e *mcpskill.Entry, res *capability.Result) {
	for i := range res.Parts {
		if p := &res.Parts[i]; p.Data == nil {
			p.Text = untrusted.Block(p.Text, untrusted.BlockConfig{Origin: "skill " + e.Name() + " of the MCP server " + s.def.Name, Max: mcpskill.MaxBytes})
			p.Link, p.MIME, p.Extra = "", "", nil
		}
	}
}

var errNoSkill = errors.New("the server no longer offers this skill")
