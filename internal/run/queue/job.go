package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
)

// A State is where a job stands.
type State string

// The states. The last four are final, except that a person may have a job that
// is not done run again with [Queue.Retry].
const (
	Scheduled State = "scheduled" // waits for its time
	Queued    State = "queued"    // waits for a worker
	Running   State = "running"
	Waiting   State = "waiting" // for an approval
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
	Unknown   State = "unknown" // its worker died, or it was stopped, and it may have had its effect
)

// States returns all states.
func States() []State {
	return []State{Scheduled, Queued, Running, Waiting, Done, Failed, Cancelled, Unknown}
}

// Final reports whether a job in this state does nothing more by itself.
func (s State) Final() bool {
	return s == Done || s == Failed || s == Cancelled || s == Unknown
}

// A Job is a call that runs later. One with a Schedule never runs itself: it adds
// a job for each time, whose Parent it is.
type Job struct {
	ID       string          `json:"id"`
	Call     capability.Call `json:"call"`              // as whom, in which session and mode; its key is that of the job
	Surface  string          `json:"surface,omitempty"` // where it was added
	Folder   string          `json:"folder,omitempty"`  // the workspace that it runs in
	Group    string          `json:"group,omitempty"`   // the extension of its target, which limits go by
	Priority int             `json:"priority"`          // the higher first
	At       time.Time       `json:"at,omitzero"`       // not before
	Schedule string          `json:"schedule,omitempty"`
	Parent   string          `json:"parent,omitempty"`
	Retries  int             `json:"retries,omitempty"` // how often it is tried again where that is safe
	Needs    []string        `json:"needs,omitempty"`   // of the worker that runs it: see [NeedProgram]

	State   State     `json:"state"`
	Attempt int       `json:"attempt"` // from 0; each has its own key
	Added   time.Time `json:"added"`
	Started time.Time `json:"started,omitzero"` // the last time
	Ended   time.Time `json:"ended,omitzero"`
	Worker  string    `json:"worker,omitempty"` // that runs it, or did last

	// Why says why it is in its state, and Kind of which kind an error was.
	Why    string `json:"why,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Ticket string `json:"ticket,omitempty"` // of the approval that it waits for
	Effect string `json:"effect,omitempty"` // id in the audit log of a call whose outcome is unknown

	CancelBy string `json:"cancelBy,omitempty"` // who asked that it be cancelled while it ran

	// Orphaned is when an attempt started whose worker died, or could not read what
	// became of its call. The attempt is made again with its key.
	Orphaned time.Time `json:"orphaned,omitzero"`

	// Of a job with a schedule: how often it ran, how often it did not because
	// the run before had not ended, and the last run.
	Runs    int    `json:"runs,omitempty"`
	Skipped int    `json:"skipped,omitempty"`
	Last    string `json:"last,omitempty"`

	Version int64 `json:"-"` // of what is stored, for the queue itself
}

// Key is the key of the current attempt's call: see [capability.Call].
func (j *Job) Key() string { return "job:" + j.ID + ":" + strconv.Itoa(j.Attempt) }

// Who names the principal of a job, which limits go by.
func (j *Job) Who() string { return j.Call.Principal.Tenant + "\x00" + j.Call.Principal.ID }

// MaxPriority is the highest priority of a job; the lowest is -MaxPriority.
const MaxPriority = 100

// check says what is wrong with a job that is to be added.
func (j *Job) check() error {
	switch {
	case j.Call.Target == "":
		return invalid("the job names no capability", "name one")
	case j.Call.Principal.ID == "":
		return invalid("the job has no principal", "set the principal of the call")
	case j.Priority < -MaxPriority || j.Priority > MaxPriority:
		return invalid(fmt.Sprintf("the priority %d is not in the range %d to %d", j.Priority, -MaxPriority, MaxPriority), "choose one in that range")
	case j.Retries < 0 || j.Retries > MaxRetries:
		return invalid(fmt.Sprintf("the number of retries, %d, is not in the range 0 to %d", j.Retries, MaxRetries), "choose a number in that range")
	case len(j.Call.Arguments) > 0 && !json.Valid(j.Call.Arguments):
		return invalid("the arguments are not JSON", "write a JSON object")
	case !j.At.IsZero() && (j.At.UTC().Year() < firstYear || j.At.UTC().Year() > lastYear):
		return invalid(fmt.Sprintf("the year %d is not in the range %d to %d", j.At.UTC().Year(), firstYear, lastYear), "choose a time in that range")
	case j.Schedule != "":
		_, err := ParseSchedule(j.Schedule)
		return err
	}
	return nil
}

// The years in which a job may be due. Those outside have no order as keys, or no
// form in JSON.
const (
	firstYear = 1970
	lastYear  = 9000
)

// MaxRetries is the most that a job may be tried again by itself.
const MaxRetries = 20

func invalid(why, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: "add job", Err: errors.New(why), Fix: fix}
}

func notFound(id string) error {
	return &capability.Error{
		Kind: capability.NotFound, Op: "find job", Target: fmt.Sprintf("%.64q", id), Err: errors.New("job not found"),
		Fix: "see ken jobs list; ended jobs are removed after jobs.keep",
	}
}

// A Filter narrows a list. Empty fields do not.
type Filter struct {
	Tenant    string
	Principal string // with Tenant
	Parent    string
	States    []State
}

// Keeps reports whether a job passes the filter.
func (f *Filter) Keeps(j *Job) bool {
	p := j.Call.Principal
	return (f.Principal == "" || p.ID == f.Principal && p.Tenant == f.Tenant) &&
		(f.Parent == "" || j.Parent == f.Parent) && (len(f.States) == 0 || slices.Contains(f.States, j.State))
}

// Progress is how far a running job has come.
type Progress struct {
	Done    float64   `json:"done,omitempty"`
	Total   float64   `json:"total,omitempty"` // 0: not known
	Message string    `json:"message,omitempty"`
	Output  string    `json:"output,omitempty"` // the end of what it wrote
	At      time.Time `json:"at"`
}

// A Member is a worker that takes jobs.
type Member struct {
	ID       string    `json:"id"`
	Process  string    `json:"process"`
	Host     string    `json:"host,omitempty"`     // its machine
	Platform string    `json:"platform,omitempty"` // linux, darwin or windows
	Sandbox  string    `json:"sandbox,omitempty"`  // the strongest sandbox profile there
	Most     int       `json:"most,omitempty"`     // jobs that it runs at once
	Running  int       `json:"running"`            // jobs that it ran when it last said so
	Has      []string  `json:"has,omitempty"`      // what jobs need and it has
	Lacks    []string  `json:"lacks,omitempty"`    // what jobs need and it lacks; it takes none of them
	Until    time.Time `json:"until"`              // it counts as dead then, unless it says that it is alive
}

// NeedProgram is the need of a program that must be installed.
func NeedProgram(name string) string { return "program " + name }

// NeedSandbox is the need of a sandbox profile, or a stronger one.
func NeedSandbox(profile string) string { return "sandbox profile " + profile }

// NeedPlatform is the need of one of several platforms.
func NeedPlatform(names []string) string { return "platform " + strings.Join(names, " or ") }

// Blocked says why none of the live workers can run a job that is queued, or "".
func Blocked(j Job, live []Member) string {
	if j.State != Queued || len(live) == 0 {
		return ""
	}
	var why []string
	for _, m := range live {
		var lacks []string
		for _, need := range j.Needs {
			if slices.Contains(m.Lacks, need) {
				lacks = append(lacks, need)
			}
		}
		if len(lacks) == 0 {
			return ""
		}
		name := m.ID
		if m.Host != "" {
			name += " on " + m.Host
		}
		why = append(why, name+" has no "+strings.Join(lacks, " and no "))
	}
	return "no live worker can run it: " + short(strings.Join(why, "; "), 500)
}

// Limits bound how many jobs run at once, over all workers. Zero is no limit.
type Limits struct {
	PerGroup     int // of one extension
	PerPrincipal int
}

// An Ask is what a worker wants to be given.
type Ask struct {
	Worker string
	Limits Limits
	Most   int // jobs at once; less than 1 is one

	// Lacks, when not nil, returns what of a job's needs the worker lacks. It is not
	// given such a job.
	Lacks func(needs []string) []string
}

// An Outcome is what came of an attempt. State is the next state of the job:
// Queued or Scheduled has it made again, the latter not before At.
type Outcome struct {
	State  State
	Why    string
	Kind   string
	Ticket string
	Effect string
	At     time.Time
	Next   bool // the next attempt, with another key
	Orphan bool // the same attempt, whose call may have begun; see [Job.Orphaned]
	Result *capability.Result
}

// A Signal says that a queue has changed: that a running job is to be cancelled,
// by whom, or, with an empty id, that there may be something to claim.
type Signal struct {
	Cancel string
	By     string
}

// A Queue keeps jobs. Its methods are safe for any number of goroutines and
// processes.
type Queue interface {
	// Add keeps a job and returns it with its id. The job is Queued, or Scheduled
	// where its time is to come.
	Add(ctx context.Context, j Job) (Job, error)
	Get(ctx context.Context, id string) (Job, error)
	// List returns jobs in the order in which they were added.
	List(ctx context.Context, f Filter) ([]Job, error)
	// Result returns what a job that ended gave back, and false if it gave nothing.
	Result(ctx context.Context, id string) (capability.Result, bool, error)
	// Progress returns the last progress of a running job, and false without any.
	Progress(ctx context.Context, id string) (Progress, bool, error)
	// Cancel ends a job that does not run, and tells the worker of one that does.
	Cancel(ctx context.Context, id, by string) (Job, error)
	// Retry has a job run again that failed, was cancelled, or is unknown. The
	// last only with again: it may then have its effect twice.
	Retry(ctx context.Context, id string, again bool) (Job, error)

	// Join says that a worker is alive for a time, and is repeated before that is
	// over. Leave says that it takes no more.
	Join(ctx context.Context, m Member, lease time.Duration) error
	Leave(ctx context.Context, worker string) error
	Members(ctx context.Context) ([]Member, error)
	// Claim returns the next jobs for a worker: those that may run, by priority and
	// then by age.
	Claim(ctx context.Context, a Ask) ([]Job, error)
	// NextDue returns when the next scheduled job is due, and false without any.
	NextDue(ctx context.Context) (time.Time, bool, error)
	// Report keeps how far a job has come.
	Report(ctx context.Context, id string, p Progress) error
	// Finish ends an attempt of a job as it was claimed. It fails with
	// [ErrLost] if the job was given to another worker since.
	Finish(ctx context.Context, j Job, o Outcome) (Job, error)
	// Resume queues a job again that waits for an approval.
	Resume(ctx context.Context, j Job) error
	// Recover queues the jobs again whose workers have died, and returns them.
	Recover(ctx context.Context, dead func(process string) bool) ([]Job, error)
	// Realign brings the times of scheduled jobs nearer that were set while the
	// clock was ahead, and returns how many: else they would wait until it is that
	// late. A time that a person chose stays.
	Realign(ctx context.Context) (int, error)
	// Watch sends signals until ctx ends, and then closes the channel. Cancels
	// from before the call are sent too.
	Watch(ctx context.Context) (<-chan Signal, error)
	// Follow sends jobs that changed since the call, until ctx ends, and then
	// closes the channel. With an id it sends that job alone, and also when its
	// progress changed. Of several changes in quick succession only the last may
	// be sent.
	Follow(ctx context.Context, id string) (<-chan Job, error)
}

// ErrLost says that a job belongs to another worker by now.
var ErrLost = errors.New("the job was taken over by another worker")

// short is a text that fits on a line of a list.
func short(s string, most int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
