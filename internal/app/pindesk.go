package app

import (
	"context"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/lazy"
	"ken/internal/run/mcpservers/definitions"
)

// openPins makes the desk that remembers what servers offered.
func (a *App) openPins() (*pin.Desk, error) {
	s, err := a.store.Get()
	if err != nil {
		return nil, err
	}
	return pin.New(s, pin.Config{
		Policy:    a.pinRules,
		Reviewers: a.Settings.Approval.Approvers,
		Reserved:  capability.OwnTools(),
		Plain:     a.plainNames,
		Log:       a.notePins,
	})
}

// newDefinitions returns the pins of definitions in the files of mcp.import. No
// setting accepts a definition.
func (a *App) newDefinitions() *definitions.Pins {
	desk := &lazy.Value[*pin.Desk]{Build: func() (*pin.Desk, error) {
		s, err := a.store.Get()
		if err != nil {
			return nil, err
		}
		return pin.New(s, pin.Config{
			Reviewers: a.Settings.Approval.Approvers, Reserved: capability.OwnTools(), Plain: func() bool { return false }, Log: a.notePins,
		})
	}}
	return definitions.New(definitions.Config{
		Desk: desk.Get, Key: func() (audit.Key, error) { return audit.LoadKey(a.auditKey()) }, Reviewers: a.Settings.Approval.Approvers,
	})
}

// pinRules say what becomes of tools that nobody has accepted, as ken.yaml says
// now.
func (a *App) pinRules() pin.Policy {
	rule := func(r config.PinRule) pin.Rule {
		if r == config.PinAccept {
			return pin.Accept
		}
		return pin.Quarantine
	}
	set := a.effective().MCP
	return pin.Policy{New: rule(set.New), Changed: rule(set.Changed)}
}

// notePins records what becomes of pins.
func (a *App) notePins(ctx context.Context, r audit.Record) error {
	log, err := a.trail.Get()
	if err == nil {
		_, err = log.Append(ctx, r)
	}
	return err
}

// A pinner asks the desk, which is opened when the first server has tools.
type pinner struct{ app *App }

func (p pinner) Check(ctx context.Context, server string, tools []pin.Tool) (map[string]pin.Verdict, error) {
	desk, err := p.app.serving.pins.Get()
	if err != nil {
		return nil, err
	}
	return desk.Check(ctx, server, tools)
}
