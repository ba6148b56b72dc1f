package audit

import (
	"encoding/json"
	"fmt"
	"time"

	"ken/capability"
)

// An Event says what a record is about. The six of the seed come first; a
// record with another word is accepted and has level INFO.
type Event string

const (
	Started   Event = "capability_started"  // DEBUG: durable before the effect
	Executed  Event = "capability_executed" // INFO
	Slow      Event = "capability_slow"     // WARNING: beside Executed, past the threshold
	Failed    Event = "capability_failed"   // ERROR
	TimedOut  Event = "capability_timeout"  // ERROR
	Violation Event = "security_violation"  // ERROR: refused by a check

	Unknown      Event = "capability_unknown" // ERROR: running when its process died
	Asked        Event = "capability_asked"   // INFO: waits for a person
	Approval     Event = "approval_settled"   // INFO: granted or denied by a person
	JobAdded     Event = "job_added"          // INFO: a call that is to run later
	JobCancelled Event = "job_cancelled"      // INFO
	JobRetried   Event = "job_retried"        // INFO

	Changed Event = "extension_changed"   // WARNING: reviewed, enabled, disabled
	Opened  Event = "audit_chain_opened"  // INFO: the first record of every chain; written by Open only
	Retired Event = "audit_chain_retired" // WARNING: an old chain was removed on purpose; by Retire only
	Resumed Event = "audit_resumed"       // WARNING: the disk had no room for a while; written by the log only
)

// Level is the seed's level of an event.
func (e Event) Level() string {
	switch e {
	case Started:
		return "DEBUG"
	case Slow, Changed, Retired, Resumed:
		return "WARNING"
	case Failed, TimedOut, Violation, Unknown:
		return "ERROR"
	}
	return "INFO"
}

// A Status is how a call ended, or that it has begun.
type Status string

const (
	Running     Status = "STARTED"
	Completed   Status = "COMPLETED"
	CallFailed  Status = "FAILED"
	CallTimeout Status = "TIMEOUT"
	Denied      Status = "DENIED"
	Cancelled   Status = "CANCELLED"
	Pending     Status = "PENDING" // a person must agree first
	Lost        Status = "UNKNOWN" // whether it had its effect is not known
)

// Event is the event of the closing record of a call that ended with s.
func (s Status) Event() Event {
	switch s {
	case Running:
		return Started
	case Completed:
		return Executed
	case CallTimeout:
		return TimedOut
	case Denied:
		return Violation
	case Pending:
		return Asked
	case Lost:
		return Unknown
	}
	return Failed
}

// A Record is one line of the trail. The first block is the seed's, under its
// names and always written; the rest is left out where it is zero. The log
// sets Timestamp, Monotonic, Seq and Prev, and Level and Logger where empty.
//
// A Record never holds raw arguments: CommandLine comes from
// [Redactor.CommandLine], ArgsDigest from [Log.Digest]. Every text in it is
// redacted again on its way in.
type Record struct {
	Timestamp       time.Time `json:"timestamp"`
	Level           string    `json:"level"`
	Logger          string    `json:"logger"`
	Event           Event     `json:"event"`
	ExtensionID     string    `json:"extension_id"`
	Command         string    `json:"command"`
	Action          string    `json:"action"`
	Runner          string    `json:"runner"`
	SessionID       string    `json:"session_id"`
	UserID          string    `json:"user_id"`
	Success         *bool     `json:"success"`          // nil: not ended
	DurationSeconds *float64  `json:"duration_seconds"` // nil: not ended
	ExitCode        *int      `json:"exit_code"`        // nil: no process
	Metadata        Metadata  `json:"metadata"`
	Error           *string   `json:"error"`

	Status         Status          `json:"status,omitempty"`
	EffectID       string          `json:"effect_id,omitempty"` // the same before and after
	Tenant         string          `json:"tenant,omitempty"`
	Agent          string          `json:"agent,omitempty"`  // the agent that works for the user: the name of its token
	Target         string          `json:"target,omitempty"` // capability id
	CapabilityHash string          `json:"capability_hash,omitempty"`
	Origin         string          `json:"origin,omitempty"` // "person", "app" for a page of an MCP server, or "" for a model
	Intent         string          `json:"intent,omitempty"`
	Mode           string          `json:"mode,omitempty"`
	Decision       string          `json:"decision,omitempty"` // allow, ask, deny
	Rule           string          `json:"rule,omitempty"`
	Risk           *int            `json:"risk,omitempty"`
	Isolation      json.RawMessage `json:"isolation,omitempty"` // as the sandbox reports it
	CommandLine    string          `json:"command_line,omitempty"`
	ArgsDigest     string          `json:"args_digest,omitempty"`
	StdoutDigest   string          `json:"stdout_digest,omitempty"`
	StderrDigest   string          `json:"stderr_digest,omitempty"`
	DurationMS     *int64          `json:"duration_ms,omitempty"`
	Truncated      bool            `json:"truncated,omitempty"`
	ResultBytes    int64           `json:"result_bytes,omitempty"` // what came, before any cut
	ResultHandle   string          `json:"result_handle,omitempty"`

	Chain *ChainStart `json:"chain,omitempty"` // in Opened and Retired only
	Clock *time.Time  `json:"clock,omitempty"` // the wall clock, where it ran behind Timestamp

	Monotonic int64  `json:"mono_us"` // microseconds since the chain was opened
	Seq       int64  `json:"seq"`
	Prev      string `json:"prev"` // hash of the line before; of the first line, of the chain's name
}

// Metadata is the seed's block of details.
type Metadata struct {
	Tool      string            `json:"tool"`
	ArgsCount int               `json:"args_count"`
	WorkDir   string            `json:"work_dir"`
	Notes     map[string]string `json:"notes,omitempty"`
}

// A ChainStart is what the first record of a chain says about its process, and
// the signed heads of other chains that it saw then.
type ChainStart struct {
	Name    string    `json:"name"`
	Program string    `json:"program,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Host    string    `json:"host,omitempty"`
	Boot    string    `json:"boot,omitempty"`
	Seen    []Witness `json:"seen,omitempty"`
}

// A Witness is the head of another chain, remembered in this one.
type Witness struct {
	Chain string `json:"chain"`
	Size  int64  `json:"size"`
	Root  string `json:"root"`
}

// ForCall fills what a record takes over from a call. Arguments stay out.
func ForCall(call capability.Call) Record {
	return Record{
		Action:         call.Action,
		SessionID:      call.Session,
		UserID:         call.Principal.ID,
		Tenant:         call.Principal.Tenant,
		Agent:          call.Principal.Agent,
		Target:         string(call.Target),
		CapabilityHash: call.CapabilityHash,
		Origin:         string(call.Origin),
		Intent:         call.Intent,
		Mode:           call.Mode,
	}
}

// Ended returns the closing record of the call that r began: status, event,
// success and duration, in seconds and in milliseconds. The caller adds
// Error, ExitCode and what is known of the result.
func (r Record) Ended(status Status, took time.Duration) Record {
	r.Status, r.Event, r.Level = status, status.Event(), ""
	r.Success = new(status == Completed)
	r.DurationSeconds = new(took.Round(time.Microsecond).Seconds())
	r.DurationMS = new(took.Milliseconds())
	return r
}

// AsSlow returns the warning that goes beside the closing record r of a call
// that took longer than it should.
func (r Record) AsSlow() Record {
	r.Event, r.Level = Slow, ""
	return r
}

// Longest texts, in bytes after redaction; what is cut says so.
const (
	maxText  = 4 << 10
	maxLong  = 32 << 10 // command lines and errors
	maxLine  = 1 << 20  // one record; a longer line is not ours
	maxNotes = 32
)

// texts are the plain texts of r. A field of type string that is missing here
// and in clean would reach the log unredacted: a test looks for that.
func (r *Record) texts() [26]*string {
	return [...]*string{
		&r.Level, &r.Logger, (*string)(&r.Event), &r.ExtensionID, &r.Command, &r.Action, &r.Runner,
		&r.SessionID, &r.UserID, (*string)(&r.Status), &r.EffectID, &r.Tenant, &r.Agent, &r.Target,
		&r.CapabilityHash, &r.Origin, &r.Intent, &r.Mode, &r.Decision, &r.Rule, &r.ArgsDigest,
		&r.StdoutDigest, &r.StderrDigest, &r.ResultHandle, &r.Metadata.Tool, &r.Metadata.WorkDir,
	}
}

// clean redacts every text of r and cuts what is too long. What r points to is
// its caller's and stays as it is. (No function is handed in for the texts: r
// would move to the heap, for every record.)
func (r *Record) clean(by *Redactor) error {
	for _, s := range r.texts() {
		*s = clip(by.String(*s), maxText)
	}
	r.CommandLine = clip(by.String(r.CommandLine), maxLong)
	if r.Error != nil {
		r.Error = new(clip(by.String(*r.Error), maxLong))
	}
	if len(r.Metadata.Notes) > 0 {
		notes := make(map[string]string, len(r.Metadata.Notes))
		for k, v := range r.Metadata.Notes {
			notes[clip(by.String(k), maxText)] = clip(by.String(v), maxText)
		}
		r.Metadata.Notes = notes
	}
	if len(r.Isolation) > 0 {
		clean, err := by.isolation(r.Isolation)
		if err != nil {
			return fmt.Errorf("isolation: %w", err)
		}
		r.Isolation = clean
	}
	return nil
}
