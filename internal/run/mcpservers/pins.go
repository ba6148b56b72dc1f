package mcpservers

import (
	"context"
	"time"

	"ken/internal/config"
	"ken/internal/govern/pin"
	"ken/internal/run/sandbox"
)

// PinPolicy returns what happens to tools that are not accepted yet.
func PinPolicy(set config.MCP) pin.Policy {
	rule := func(r config.PinRule) pin.Rule {
		if r == config.PinAccept {
			return pin.Accept
		}
		return pin.Quarantine
	}
	return pin.Policy{New: rule(set.New), Changed: rule(set.Changed)}
}

// A LazyPinner checks tools with the desk of their pins, which is opened when
// the first server has tools.
type LazyPinner func() (*pin.Desk, error)

// Check compares the tools of a server with their pins.
func (open LazyPinner) Check(ctx context.Context, server string, tools []pin.Tool) (map[string]pin.Verdict, error) {
	desk, err := open()
	if err != nil {
		return nil, err
	}
	return desk.Check(ctx, server, tools)
}

// Standing returns how a server stands; see [pin.Desk.Standing].
func (open LazyPinner) Standing(ctx context.Context, server string) (pin.Standing, error) {
	desk, err := open()
	if err != nil {
		return pin.Standing{}, err
	}
	return desk.Standing(ctx, server)
}

// Saw keeps the digests of a listing that was checked.
func (open LazyPinner) Saw(ctx context.Context, server string, seen pin.Seen) error {
	desk, err := open()
	if err != nil {
		return err
	}
	return desk.Saw(ctx, server, seen)
}

// Limits returns the limits of a server's process. They are wider than those of
// a call, because a server lives long and answers many.
func Limits(set config.Sandbox) sandbox.Limits {
	return sandbox.Limits{
		Wall: -1, CPU: -1, Memory: set.Memory, AddressSpace: -1, Processes: 4096, OpenFiles: 65536, FileSize: -1,
		Output: 64 << 10, OutputStop: -1, Scratch: set.Scratch, Grace: 2 * time.Second,
	}
}
