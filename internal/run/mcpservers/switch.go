package mcpservers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/connect"
	"ken/internal/govern/audit"
)

// Switch enables or disables a server of mcp.json, and reports whether that
// changed anything. The error for a server that is defined elsewhere says what a
// person has to write there. why may be empty.
func (s *Servers) Switch(ctx context.Context, by capability.Principal, name string, on bool, why string) (changed bool, err error) {
	op, word := "switch off", "disable"
	if on {
		op, word = "switch on", "enable"
	}
	def, err := s.Find(op, name)
	if err != nil || def.Disabled != on {
		return false, err
	}
	if def.Origin.Path != File(s.cfg.Places) {
		e := &capability.Error{Kind: capability.Invalid, Op: op, Target: "mcp:" + name, Err: fmt.Errorf("the server is defined in %s, which Ken does not change", def.Origin)}
		at := "to its entry there"
		line := `"disabled": true`
		if slices.Contains(s.cfg.ConfigFiles, def.Origin.Path) {
			at, line = "under mcp.servers."+name+" there", "disabled: true"
		}
		e.Fix = "add " + line + " " + at
		if on {
			e.Fix = "take disabled away " + at
		}
		return false, e
	}
	if err := s.recordSwitch(ctx, by, name, word, why); err != nil {
		return false, err
	}
	err = connect.EditFile(File(s.cfg.Places), func(old []byte) (out []byte, err error) {
		out, changed, err = connect.Switch(old, name, on)
		return out, err
	})
	if err != nil {
		return false, err
	}
	s.replace()
	return changed, nil
}

// recordSwitch records in the audit log that a person enables or disables a
// server. It comes before the change.
func (s *Servers) recordSwitch(ctx context.Context, by capability.Principal, name, word, why string) error {
	id, success := "mcp:"+name, true
	r := audit.Record{
		Event: audit.Changed, ExtensionID: id, Command: "extension", Action: word, Target: id, Origin: string(capability.ByPerson),
		UserID: by.ID, Tenant: by.Tenant, Status: audit.Completed, Success: &success,
	}
	if why != "" {
		r.Metadata.Notes = map[string]string{"why": why}
	}
	if err := s.cfg.Record(ctx, r); err != nil {
		return &capability.Error{Kind: capability.Unavailable, Op: word, Target: id, Rule: "audit", Err: errors.Join(errors.New("the change could not be recorded, so nothing was changed"), err), Fix: "fix the audit log; ken doctor shows the problem"}
	}
	return nil
}
