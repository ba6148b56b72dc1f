package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/connect"
	"ken/internal/govern/audit"
)

// SwitchServer switches an MCP server of mcp.json on or off, and reports whether
// it was otherwise before. One that is defined elsewhere is a person's to
// switch: the error says where.
func (a *App) SwitchServer(ctx context.Context, by capability.Principal, name string, on bool, why string) (changed bool, err error) {
	op, word := "switch off", "disable"
	if on {
		op, word = "switch on", "enable"
	}
	s, err := a.serverNamed(op, name)
	if err != nil || s.Disabled != on {
		return false, err
	}
	if s.Origin.Path != a.serverFile() {
		e := &capability.Error{Kind: capability.Invalid, Op: op, Target: "mcp:" + name, Err: fmt.Errorf("it is defined in %s, which Ken does not change", s.Origin)}
		at := "to its entry there"
		line := `"disabled": true`
		if slices.Contains(a.Settings.Files(), s.Origin.Path) {
			at, line = "under mcp.servers."+name+" there", "disabled: true"
		}
		e.Fix = "add " + line + " " + at
		if on {
			e.Fix = "take disabled away " + at
		}
		return false, e
	}
	if err := a.noteSwitch(ctx, by, name, word, why); err != nil {
		return false, err
	}
	err = connect.EditFile(a.serverFile(), func(old []byte) (out []byte, err error) {
		out, changed, err = connect.Switch(old, name, on)
		return out, err
	})
	if err != nil {
		return false, err
	}
	if list := a.servers(); !a.shared {
		a.gateway.Replace(list)
	}
	return changed, nil
}

// noteSwitch records that a person switches a server, before that happens.
func (a *App) noteSwitch(ctx context.Context, by capability.Principal, name, word, why string) error {
	log, err := a.trail.Get()
	if err == nil {
		id, success := "mcp:"+name, true
		r := audit.Record{
			Event: audit.Changed, ExtensionID: id, Command: "extension", Action: word, Target: id, Origin: string(capability.ByPerson),
			UserID: by.ID, Tenant: by.Tenant, Status: audit.Completed, Success: &success,
		}
		if why != "" {
			r.Metadata.Notes = map[string]string{"why": why}
		}
		_, err = log.Append(ctx, r)
	}
	if err != nil {
		return &capability.Error{Kind: capability.Unavailable, Op: word, Target: "mcp:" + name, Rule: "audit", Err: errors.Join(errors.New("nobody could record it, so nothing was changed"), err), Fix: "mend the audit log; ken doctor says what is wrong"}
	}
	return nil
}
