package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Profile names a set of layers.
type Profile string

// The profiles, weakest first.
const (
	None     Profile = "none"
	Landlock Profile = "landlock"
	Full     Profile = "full"
)

// Isolation says what held a run. It is part of every result and record.
type Isolation struct {
	Profile     Profile     `json:"profile"`
	LandlockABI int         `json:"landlock_abi"`
	Seccomp     bool        `json:"seccomp"`
	NetNS       bool        `json:"netns"`
	PidNS       bool        `json:"pidns"`
	ReadOnly    bool        `json:"ro_root"`
	Cgroup      string      `json:"cgroup"`  // "none", or "v1:" or "v2:" and what it bounds
	Rlimits     []string    `json:"rlimits"` // those set, by name
	Missing     []string    `json:"missing"` // "layer: why", for each layer not in force
	Required    Requirement `json:"required"`
}

// With returns what is in force for a run that is left so much of the machine.
func (i Isolation) With(open Open) Isolation {
	i.Missing = slices.Clone(i.Missing)
	if open.Files {
		i.ReadOnly = false
		text := "files: as before"
		if i.Profile == Full && len(open.Hide) > 0 {
			text += ", but not " + strings.Join(open.Hide, ", ")
		}
		i.Missing = append(i.Missing, text)
		if i.Profile != Full && len(open.Hide) > 0 {
			i.Missing = append(i.Missing, "hide: without mounts of its own the tool can see and change "+strings.Join(open.Hide, ", "))
		}
	}
	if open.UnixSockets && !open.Network {
		i.Missing = append(i.Missing, "sockets: unix sockets are open between its own processes")
	}
	if open.Network {
		i.NetNS = false
		i.Missing = append(i.Missing, "network: open, and so are the sockets of daemons")
	}
	return i
}

// unmet says what of a requirement is not in force; "" when it is met.
func (i Isolation) unmet() string {
	switch {
	case i.Required == Off || i.Required == BestEffort:
		return ""
	case i.LandlockABI == 0:
		return "landlock"
	case !i.Seccomp:
		return "seccomp"
	case i.Required == RequireLandlock:
		return ""
	case i.Profile != Full:
		return "namespaces"
	case !i.NetNS:
		return "netns"
	case !i.PidNS:
		return "pidns"
	case !i.ReadOnly:
		return "ro_root"
	}
	return ""
}

// A Refusal is why a run did not start. The tool never ran.
type Refusal struct {
	Layer     string    // what could not be had
	Cause     error     // why
	Fix       string    // what to do about it
	Isolation Isolation // what there would have been
}

func (r *Refusal) Error() string {
	text := "sandbox: not started: " + r.Layer
	if r.Cause != nil {
		text += ": " + r.Cause.Error()
	}
	if r.Fix != "" {
		text += "; " + r.Fix
	}
	return text
}

func (r *Refusal) Unwrap() error { return r.Cause }

// An End says why a run is over.
type End string

// The ends. The limits that the kernel enforces show as Signalled, with the
// limit named in [Outcome.Limit].
const (
	Exited     End = "exited"
	Signalled  End = "signalled"
	TimedOut   End = "timed-out"
	Cancelled  End = "cancelled"
	OverOutput End = "over-output"
	OverDisk   End = "over-disk"
)

// An Outcome is how a run that started ended.
type Outcome struct {
	End      End
	ExitCode int    // -1 unless Exited
	Signal   string // the signal that ended the tool, as "SIGKILL"
	Limit    string // the limit that ended it, where that is known: "wall", "cpu", "file-size", "memory", "output", "disk"

	Stdout, Stderr Output
	// Unfinished says that the output was still held open, by a process that
	// got away or a writer that blocks, when Run stopped waiting for it.
	Unfinished bool

	Duration time.Duration
	Used     Usage

	// Made are the names of [Spec.Protect] and [Spec.Watch] that were absent when the run began
	// and are there now, whatever made them; or are hidden behind something that
	// is. They were not protected: reading them means trusting the tool.
	Made []string

	Isolation Isolation
}

// Usage is what a run used, as far as the kernel tells.
type Usage struct {
	UserCPU, SystemCPU time.Duration
	MaxRSS             int64 // bytes, of the largest process
	Disk               int64 // bytes in the work directory at the end; 0 when there is no quota
}

// An Output is what was kept of one stream.
type Output struct {
	Head, Tail []byte // Tail follows Head, with Dropped bytes between them
	Bytes      int64  // how many were written in truth
	SHA256     string // of all of them
}

// Dropped is how many bytes were not kept.
func (o Output) Dropped() int64 { return o.Bytes - int64(len(o.Head)) - int64(len(o.Tail)) }

// Text is the output with a note where bytes are missing.
func (o Output) Text() string {
	var b strings.Builder
	b.Grow(len(o.Head) + len(o.Tail) + 64)
	b.Write(o.Head)
	if n := o.Dropped(); n > 0 {
		fmt.Fprintf(&b, "\n[%d of %d bytes left out here]\n", n, o.Bytes)
	}
	b.Write(o.Tail)
	return b.String()
}
