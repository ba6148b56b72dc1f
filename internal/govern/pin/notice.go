package pin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/store"
	"ken/internal/untrusted"
)

// The actions of the audit trail.
const (
	wordFirst  = "pin"     // a server was listed for the first time
	wordPolicy = "accept"  // by the setting mcp.pins
	wordAccept = "enable"  // by a person
	wordNotice = "changed" // something waits
	wordForget = "forget"  // by a person
)

// mostNamed is how many tools a record names; it has the number of all of them.
const mostNamed = 20

func record(server, action string, by capability.Principal) audit.Record {
	id := "mcp:" + ServerName(server)
	success := true
	r := audit.Record{
		Event: audit.Changed, ExtensionID: id, Command: "extension", Action: action, Target: id,
		UserID: by.ID, Tenant: by.Tenant, Status: audit.Completed, Success: &success,
	}
	if by.ID != "" {
		r.Origin = string(capability.ByPerson)
	}
	r.Metadata.Notes = map[string]string{"place": serverPlace(server)}
	return r
}

// noticed is the record of tools that wait from now on.
func (c *change) noticed(tools []string) audit.Record {
	r := record(c.next.Server, wordNotice, capability.Principal{})
	c.name(&r, tools, func(tool string) (hash, more string) {
		w := c.next.Waiting[tool]
		return w.Hash, ": " + w.Diff
	})
	return r
}

func (c *change) name(r *audit.Record, tools []string, of func(string) (hash, more string)) {
	var lines []string
	for _, tool := range tools[:min(len(tools), mostNamed)] {
		hash, more := of(tool)
		lines = append(lines, untrusted.Line(tool, 128)+" "+hash+more)
	}
	r.Metadata.Notes["tools"] = strings.Join(lines, "; ")
	r.Metadata.Notes["tool_count"] = strconv.Itoa(len(tools))
	if len(tools) == 1 {
		r.CapabilityHash, _ = of(tools[0])
	}
}

// recorded writes a change that accepts tools between two records: one that
// must be durable before it, and one that says how it ended.
func (d *Desk) recorded(ctx context.Context, c *change, action string, by capability.Principal, tools []string) (*book, error) {
	r := record(c.next.Server, action, by)
	c.name(&r, tools, func(tool string) (hash, more string) { return c.next.Pins[tool].Hash, "" })
	before := r
	before.Status, before.Success = audit.Running, nil
	if err := d.conf.Log(ctx, before); err != nil {
		return nil, fmt.Errorf("not accepted, because the audit log could not be written: %w", err)
	}
	next, err := d.write(ctx, c)
	if err != nil {
		text, success := err.Error(), false
		r.Status, r.Success, r.Error = audit.CallFailed, &success, &text
		if logErr := d.conf.Log(context.WithoutCancel(ctx), r); logErr != nil && !errors.Is(err, store.ErrConflict) {
			err = errors.Join(err, logErr)
		}
		return nil, err
	}
	if err := d.conf.Log(context.WithoutCancel(ctx), r); err != nil {
		return next, fmt.Errorf("accepted and recorded, but the second audit record could not be written: %w", err)
	}
	return next, nil
}
