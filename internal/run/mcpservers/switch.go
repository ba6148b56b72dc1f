package mcpservers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/run/mcpgateway"
)

// Switch enables or disables a server of mcp.json or of the person's own ken.yaml,
// and reports whether that changed anything. The error for a server that is defined
// elsewhere says what a person has to write there. why may be empty.
func (s *Servers) Switch(ctx context.Context, by capability.Principal, name string, on bool, why string) (changed bool, err error) {
	op, word := "switch off", "disable"
	if on {
		op, word = "switch on", "enable"
	}
	def, err := s.Find(op, name)
	if err != nil || def.Disabled != on {
		return false, err
	}
	if s.Unswitchable(def) != "" {
		e := &capability.Error{Kind: capability.Invalid, Op: op, Target: "mcp:" + name, Err: errors.New(s.Unswitchable(def))}
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
	if def.Origin.Path == File(s.cfg.Places) {
		err = connect.EditFile(def.Origin.Path, func(old []byte) (out []byte, err error) {
			out, changed, err = connect.Switch(old, name, on)
			return out, err
		})
	} else {
		changed, err = true, switchSetting(def.Origin.Path, name, on)
	}
	if err != nil {
		return false, err
	}
	s.replace()
	return changed, nil
}

// switchSetting enables or disables a server of a ken.yaml.
func switchSetting(file, name string, on bool) error {
	key := "mcp.servers." + name + ".disabled"
	if on {
		_, err := config.Unset(file, key)
		return err
	}
	return config.Set(file, key, "true")
}

// Unswitchable says why Switch does not change a server, or "".
func (s *Servers) Unswitchable(def mcpgateway.Server) string {
	own := def.Origin.Path == File(s.cfg.Places) || slices.Contains(s.cfg.ConfigFiles, def.Origin.Path) && filepath.Dir(def.Origin.Path) == s.cfg.Places.Home
	if own {
		return ""
	}
	return fmt.Sprintf("the server is defined in %s, which Ken does not change", def.Origin)
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
