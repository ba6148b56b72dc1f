package audit

import (
	"errors"
	"io"
	"slices"
)

// Died returns the names of at most that many other chains whose process ended
// without closing them, the newest first.
func (l *Log) Died(most int) ([]string, error) {
	names, err := listHeads(l.cfg.CheckpointDir)
	if err != nil {
		return nil, err
	}
	known, err := verifiers(l.cfg.Key.public)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range slices.Backward(names) {
		if name == l.chain {
			continue
		}
		if len(out) >= most {
			break
		}
		hs, err := readSomeHeads(l.cfg.CheckpointDir, name, known, 1)
		if err != nil || hs.alive || hs.newest != nil && hs.newest.closed {
			continue // Verify reports a head that cannot be read
		}
		out = append(out, name)
	}
	return out, nil
}

// Orphans returns the records of calls that a chain in dir started and did not
// end, in order. Lines that cannot be read are skipped.
func Orphans(dir, chain string) ([]Record, error) {
	chains, _, err := listChains(dir)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(chains, func(c chainFiles) bool { return c.name == chain })
	if i < 0 {
		return nil, nil
	}
	c := &cursor{dir: dir, files: chains[i], filter: newMatcher(Filter{})}
	defer c.close()
	var open []Record
	for {
		e, err := c.next()
		if errors.Is(err, io.EOF) {
			return open, nil
		}
		if err != nil || e.Record.EffectID == "" {
			continue
		}
		switch {
		case e.Record.Event == Started:
			open = append(open, e.Record)
		case e.Record.Event != Slow && e.Record.Success != nil:
			if at := slices.IndexFunc(open, func(r Record) bool { return r.EffectID == e.Record.EffectID }); at >= 0 {
				open = slices.Delete(open, at, at+1)
			}
		}
	}
}

// AsLost returns the closing record for the call that r started, for use if the
// process died before the call ended.
func (r Record) AsLost(chain string) Record {
	began := formatTime(r.Timestamp)
	out := Record{
		ExtensionID: r.ExtensionID, Command: r.Command, Action: r.Action, Runner: r.Runner, SessionID: r.SessionID, UserID: r.UserID,
		Status: Lost, Event: Unknown, Success: new(false), EffectID: r.EffectID, Tenant: r.Tenant, Agent: r.Agent, Target: r.Target,
		CapabilityHash: r.CapabilityHash, Origin: r.Origin, Intent: r.Intent, Mode: r.Mode, Decision: r.Decision, Rule: r.Rule,
		CommandLine: r.CommandLine, ArgsDigest: r.ArgsDigest,
		Error: new("the process ended during the call; the call may or may not have taken effect"),
	}
	out.Metadata.Notes = map[string]string{"chain": chain, "began": began}
	return out
}
