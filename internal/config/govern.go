package config

import (
	"fmt"
	"net/netip"
	"time"

	"ken/internal/objectstore"
	"ken/internal/yamldoc"
)

// Limits bound how calls are run. A zero field means its default.
type Limits struct {
	Concurrent        int // calls that run at once; default 64
	PerExtension      int // of one extension; default 16
	PerPrincipal      int // of one principal; zero, the default: no limit
	PerTenant         int // of one tenant; zero, the default: no limit
	Queue             int // calls that wait; default 4096
	QueuePerExtension int // of one extension; default 1024

	// Wait is how long a call waits in the queue. Zero, the default: as long
	// as its caller does.
	Wait time.Duration

	// Timeout is what a call has that asks for none, MaxTimeout the most that
	// one may ask for. Defaults 5m, and zero: as Timeout.
	Timeout    time.Duration
	MaxTimeout time.Duration

	Slow time.Duration // calls that take longer are recorded as slow; default 5s

	ArgumentBytes int // of one call's arguments; default 1 MiB
	ArgumentDepth int // levels of lists and objects in them; default 64

	// Inline is how many bytes of text a result holds; a longer one is kept
	// and read by its handle. Default 20,000.
	Inline    int
	DataBytes int // of one image or sound in a result; default 8 MiB

	Remember time.Duration // how long a finished effect is not repeated; default 24h

	Browsers    int           // that run at once; default 4
	BrowserIdle time.Duration // how long a browser lives that no call uses; default 5m

	Jobs Jobs // calls that run later
}

// Requests bounds requests to HTTP APIs.
type Requests struct {
	Bytes   int64 // of one answer, decompressed; default 8 MiB
	Rate    int   // requests a second to one host; default 10; NoLimit is none
	Retries int   // of a request that changes nothing, or has a key; default 2
	Pages   int   // that one call reads at most; default 20
}

// A Requirement says how much isolation a program must have to run at all.
type Requirement string

const (
	RequireFull     Requirement = "require-full"
	RequireLandlock Requirement = "require-landlock"
	BestEffort      Requirement = "best-effort" // what there is, and say so
	NoIsolation     Requirement = "off"         // limits alone
)

// NoLimit in a field of [Sandbox] means that there is none.
const NoLimit = -1

// Sandbox bounds the programs that calls start. A zero number means its
// default, [NoLimit] none.
type Sandbox struct {
	// Require is the least isolation. Default require-landlock; the zero value
	// means the same.
	Require Requirement

	// CPU is processor time of each process. Zero, the default: as much as the
	// call's time.
	CPU time.Duration

	Memory       int64 // bytes of each process, and of all of a call where the system can tell; zero, the default: half of the machine's
	AddressSpace int64 // bytes of each process; default none
	Processes    int64 // at once, threads too; default 512
	OpenFiles    int64 // of each process; default 1024
	FileSize     int64 // bytes of one file; default 1 GiB
	Disk         int64 // bytes of the work directory; default none
	Output       int64 // bytes kept of each stream; default 1 MiB
	Scratch      int64 // bytes of /tmp; default 64 MiB
	OutputStop   int64 // bytes of both streams at which a program is stopped; default none
	NetworkBytes int64 // up and down together; default 64 MiB

	// Networks are ranges of private or local addresses that may be reached in
	// spite of that, such as 127.0.0.0/8; the host must be granted as well.
	// Default none.
	Networks []string

	// NetworkRate is in bytes a second. Zero, the default, is no limit, and
	// there is no NoLimit.
	NetworkRate int64
}

// Prefixes returns Networks as address ranges.
func (s Sandbox) Prefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range s.Networks {
		if p, err := netip.ParsePrefix(text); err == nil { // Load has checked them
			out = append(out, p)
		}
	}
	return out
}

// Approval says how long questions and answers hold. A zero duration means its
// default.
type Approval struct {
	Wait       time.Duration // a question; default 24h
	OnceFor    time.Duration // an answer for one call, until it is used; default 1h
	SessionFor time.Duration // an answer for a session; default 720h
	AlwaysFor  time.Duration // an answer for every session; default 720h
	Retain     time.Duration // what is over can be looked up; default 2160h

	// Pending is how many questions of one principal may be open. Default 100.
	Pending int

	// Approvers are the roles that may answer for others of their tenant.
	// Default none: everybody answers for himself alone.
	Approvers []string
}

// Audit says how the record of calls is kept.
type Audit struct {
	// CheckpointDir is the absolute folder of the signed heads. Default empty:
	// beside the record, in audit-checkpoints.
	CheckpointDir string

	SegmentBytes int64 // a file of the record past this is followed by another; default 64 MiB

	// Keep is how long old chains stay. Zero, the default: for ever.
	Keep time.Duration
}

// Results says how long what calls returned can be read. A zero field means
// its default.
type Results struct {
	Keep       time.Duration // default 24h
	PerSession int           // of one session, the oldest go first; default 64
	MaxBytes   int64         // of one result; default 64 MiB
	MaxTotal   int64         // of all, the oldest go first; default 2 GiB
	Store      string        // the bucket for long texts that replicas share; default: PostgreSQL has them
}

// Jobs bounds calls that run later. A zero field means its default.
type Jobs struct {
	Concurrent   int           // that one worker runs at once; default 8
	PerExtension int           // of one extension, over all workers; default 8
	PerPrincipal int           // of one principal, over all workers; default 8
	Pending      int           // of one principal that have not ended; default 1000
	Keep         time.Duration // how long one can be looked up after it ended; default 7 days
	Serve        bool          // ken serve runs jobs too; default true
}

// Shell says what commands of the tool shell have besides the workspace. Which
// commands may run is Policy.Access. The zero Shell gives nothing.
type Shell struct {
	Env []string // names of variables that are passed on; default none

	// Hosts can be reached, as in api.example.com or *.example.com:8443.
	// Default none: no network.
	Hosts []string
}

// A Review says whether extensions must be looked at before they can be used.
type Review string

const (
	ReviewRequired Review = "required"
	ReviewOff      Review = "off"
)

// Extensions says how extension packages are run.
type Extensions struct {
	// Path lists the absolute folders of programs. Default empty: the built-in
	// list.
	Path []string

	// Review has every package off until its permissions were accepted.
	// Default required; the zero value means the same.
	Review Review
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	day = 24 * time.Hour
)

func defaultLimits() Limits {
	return Limits{
		Concurrent: 64, PerExtension: 16, Queue: 4096, QueuePerExtension: 1024, Timeout: 5 * time.Minute, Slow: 5 * time.Second,
		ArgumentBytes: mib, ArgumentDepth: 64, Inline: 20_000, DataBytes: 8 * mib, Remember: day, Browsers: 4, BrowserIdle: 5 * time.Minute,
		Jobs: Jobs{Concurrent: 8, PerExtension: 8, PerPrincipal: 8, Pending: 1000, Keep: 7 * day, Serve: true},
	}
}

func defaultSandbox() Sandbox {
	return Sandbox{
		Require: RequireLandlock, AddressSpace: NoLimit, Processes: 512, OpenFiles: 1024, FileSize: gib,
		Disk: NoLimit, Output: mib, OutputStop: NoLimit, Scratch: 64 * mib, NetworkBytes: 64 * mib,
	}
}

func limitsSettings() []setting[Config] {
	const mostCalls = 100_000
	return []setting[Config]{
		entry("limits.concurrent", "Maximum calls that run at the same time.",
			func(c *Config) *int { return &c.Limits.Concurrent }, whole(1, mostCalls)),
		entry("limits.perExtension", "Maximum calls of one extension that run at the same time. With PostgreSQL, in all processes together.",
			func(c *Config) *int { return &c.Limits.PerExtension }, whole(1, mostCalls)),
		entry("limits.perPrincipal", "Maximum calls of one principal that run at the same time; none: no limit. With PostgreSQL, in all processes together.",
			func(c *Config) *int { return &c.Limits.PerPrincipal }, whole(1, mostCalls).orNone(0)),
		entry("limits.perTenant", "Maximum calls of all principals of one tenant that run at the same time; none: no limit. With PostgreSQL, in all processes together.",
			func(c *Config) *int { return &c.Limits.PerTenant }, whole(1, mostCalls).orNone(0)),
		entry("limits.queue", "Maximum waiting calls. If there are more, calls of the session with the most waiting calls are denied first.",
			func(c *Config) *int { return &c.Limits.Queue }, whole(1, mostCalls)),
		entry("limits.queuePerExtension", "Maximum waiting calls of one extension.",
			func(c *Config) *int { return &c.Limits.QueuePerExtension }, whole(1, mostCalls)),
		entry("limits.wait", "How long a call waits for its turn; 0s: as long as its caller.",
			func(c *Config) *time.Duration { return &c.Limits.Wait }, duration(0, day, noMoreOrEver)),
		entry("limits.timeout", "Default time limit of a call.",
			func(c *Config) *time.Duration { return &c.Limits.Timeout }, duration(time.Millisecond, day, noMore)),
		maxTimeout(entry("limits.maxTimeout", "Maximum time limit that a call may request; 0s: same as timeout.",
			func(c *Config) *time.Duration { return &c.Limits.MaxTimeout }, duration(0, day, noMore))),
		entry("limits.slow", "Calls that take longer are recorded as slow.",
			func(c *Config) *time.Duration { return &c.Limits.Slow }, duration(time.Millisecond, day, noMore)),
		entry("limits.argumentBytes", "Maximum bytes of one call's arguments.",
			func(c *Config) *int { return &c.Limits.ArgumentBytes }, size[int](1, 64*mib)),
		entry("limits.argumentDepth", "Maximum depth of lists and objects in one call's arguments.",
			func(c *Config) *int { return &c.Limits.ArgumentDepth }, whole(1, 1000)),
		entry("limits.inline", "Maximum bytes of text in a result; a longer one is stored and read by its handle.",
			func(c *Config) *int { return &c.Limits.Inline }, size[int](1, 64*mib)),
		entry("limits.dataBytes", "Maximum bytes of one image or sound in a result.",
			func(c *Config) *int { return &c.Limits.DataBytes }, size[int](1, gib)),
		entry("limits.remember", "How long a finished effect is remembered and not repeated.",
			func(c *Config) *time.Duration { return &c.Limits.Remember }, duration(time.Second, 365*day, noLess)),
		entry("limits.browsers", "Maximum browsers that run at once.",
			func(c *Config) *int { return &c.Limits.Browsers }, whole(1, 64)),
		entry("limits.browserIdle", "How long a browser runs that no call uses.",
			func(c *Config) *time.Duration { return &c.Limits.BrowserIdle }, duration(time.Second, time.Hour, noMore)),
	}
}

func requestsSettings() []setting[Config] {
	return []setting[Config]{
		entry("requests.bytes", "Maximum bytes of one answer of an API, after decompression.",
			func(c *Config) *int64 { return &c.Requests.Bytes }, size[int64](1, gib)),
		entry("requests.rate", "Maximum requests per second to one host, with PostgreSQL from all processes together; none: no limit.",
			func(c *Config) *int { return &c.Requests.Rate }, whole(1, 100_000).orNone(NoLimit)),
		entry("requests.retries", "How often a request is made again when the server is busy; only requests that change nothing or carry an idempotency key.",
			func(c *Config) *int { return &c.Requests.Retries }, whole(0, 10)),
		entry("requests.pages", "Maximum pages of an answer that one call reads.",
			func(c *Config) *int { return &c.Requests.Pages }, whole(1, 1000)),
	}
}

// maxTimeout sets the rule of a key for a project's file: zero is what Timeout
// is, and that may change beside it.
func maxTimeout(s setting[Config]) setting[Config] {
	s.noWider = func(a, b *Config) bool {
		now, was := a.Limits.MaxTimeout, b.Limits.MaxTimeout
		if now == 0 || was == 0 {
			return now == was || was == 0 && now <= b.Limits.Timeout
		}
		return now <= was
	}
	return s
}

func sandboxSettings() []setting[Config] {
	const mostBytes = 1 << 50
	bytes := func(key, doc string, at func(*Sandbox) *int64) setting[Config] {
		return entry("sandbox."+key, doc, func(c *Config) *int64 { return at(&c.Sandbox) }, size[int64](1, mostBytes).orNone(NoLimit))
	}
	count := func(key, doc string, at func(*Sandbox) *int64) setting[Config] {
		return entry("sandbox."+key, doc, func(c *Config) *int64 { return at(&c.Sandbox) }, whole[int64](1, 1<<20).orNone(NoLimit))
	}
	return []setting[Config]{
		entry("sandbox.require", "Minimum sandbox profile: require-full, require-landlock, best-effort (whatever is available, and Ken reports it) or off (limits only). ken doctor shows what works here.",
			func(c *Config) *Requirement { return &c.Sandbox.Require }, word(RequireFull, RequireLandlock, BestEffort, NoIsolation)),
		entry("sandbox.cpu", "CPU time of each process; 0s: the call's time limit.",
			func(c *Config) *time.Duration { return &c.Sandbox.CPU }, duration(0, day, noMoreOrEver)),
		entry("sandbox.memory", "Memory of a call (all its processes together, shared memory and /tmp included), such as 512MiB; half: half of the machine's; none: no limit. Without a cgroup, Ken watches the call and ends it if it uses more.",
			func(c *Config) *int64 { return &c.Sandbox.Memory }, size[int64](1, mostBytes).orNone(NoLimit).orHalf()),
		bytes("addressSpace", "Address space of each process; none: no limit.", func(s *Sandbox) *int64 { return &s.AddressSpace }),
		count("processes", "Maximum processes and threads of a call; none: no limit.", func(s *Sandbox) *int64 { return &s.Processes }),
		count("openFiles", "Maximum open files of each process; none: no limit.", func(s *Sandbox) *int64 { return &s.OpenFiles }),
		bytes("fileSize", "The largest file that a program may write; none: no limit.", func(s *Sandbox) *int64 { return &s.FileSize }),
		bytes("disk", "Maximum bytes of an extension's work directory; none: no limit.", func(s *Sandbox) *int64 { return &s.Disk }),
		bytes("output", "How much is kept of a program's output, and of its error output: the beginning and the end; none: no limit.", func(s *Sandbox) *int64 { return &s.Output }),
		bytes("outputStop", "Size of both outputs together at which a program is stopped; none: no limit.", func(s *Sandbox) *int64 { return &s.OutputStop }),
		bytes("scratch", "Maximum bytes in a program's /tmp, where it has one of its own; none: no limit.", func(s *Sandbox) *int64 { return &s.Scratch }),
		bytes("networkBytes", "Maximum bytes that a call sends and receives; none: no limit.", func(s *Sandbox) *int64 { return &s.NetworkBytes }),
		entry("sandbox.networks", "Private or local addresses that programs may reach if the host is granted, as in [127.0.0.0/8, 192.168.1.7/32].",
			func(c *Config) *[]string { return &c.Sandbox.Networks }, networks()),
		entry("sandbox.networkRate", "Maximum bytes per second that a call sends and receives; none: no limit.",
			func(c *Config) *int64 { return &c.Sandbox.NetworkRate }, size[int64](1, mostBytes).orNone(0)),
	}
}

func recordSettings() []setting[Config] {
	return []setting[Config]{
		entry("approval.wait", "How long an approval request stays open.",
			func(c *Config) *time.Duration { return &c.Approval.Wait }, duration(time.Second, 365*day, noMore)),
		entry("approval.onceFor", "How long an approval of one call lasts until the call runs.",
			func(c *Config) *time.Duration { return &c.Approval.OnceFor }, duration(time.Second, 365*day, noMore)),
		entry("approval.sessionFor", "How long an approval for a session lasts.",
			func(c *Config) *time.Duration { return &c.Approval.SessionFor }, duration(time.Second, 365*day, noMore)),
		entry("approval.alwaysFor", "How long an approval for every session in the same folder (always) lasts.",
			func(c *Config) *time.Duration { return &c.Approval.AlwaysFor }, duration(time.Second, 365*day, noMore)),
		entry("approval.retain", "How long settled approval requests can be looked up.",
			func(c *Config) *time.Duration { return &c.Approval.Retain }, duration(time.Hour, 10*365*day, noMore).fixed()),
		entry("approval.pending", "Maximum approval requests of one person that may wait; more are denied, until some are answered or ken approve deny --all clears them.",
			func(c *Config) *int { return &c.Approval.Pending }, whole(1, 10_000)),
		entry("approval.approvers", "Roles that may approve calls of others in their tenant; empty: each person approves only their own.",
			func(c *Config) *[]string { return &c.Approval.Approvers }, texts("roles", subset, nil)),
		entry("audit.checkpointDir", "The folder of the signed checkpoints of the audit log, best on another disk; empty: audit-checkpoints next to the audit log.",
			func(c *Config) *string { return &c.Audit.CheckpointDir }, path()),
		entry("audit.segmentBytes", "Size at which Ken starts the next file of the audit log.",
			func(c *Config) *int64 { return &c.Audit.SegmentBytes }, size[int64](64*kib, 16*gib).fixed()),
		entry("audit.keep", "How long the audit log is kept; 0s: forever.",
			func(c *Config) *time.Duration { return &c.Audit.Keep }, duration(0, 100*365*day, noMore).fixed()),
		entry("jobs.concurrent", "Maximum jobs that one ken worker, or ken serve, runs at the same time.",
			func(c *Config) *int { return &c.Limits.Jobs.Concurrent }, whole(1, 1000)),
		entry("jobs.perExtension", "Maximum jobs of one extension that run at the same time, over all workers.",
			func(c *Config) *int { return &c.Limits.Jobs.PerExtension }, whole(1, 10_000)),
		entry("jobs.perPrincipal", "Maximum jobs of one principal that run at the same time, over all workers.",
			func(c *Config) *int { return &c.Limits.Jobs.PerPrincipal }, whole(1, 10_000)),
		entry("jobs.pending", "Maximum jobs of one principal that have not ended; more are denied.",
			func(c *Config) *int { return &c.Limits.Jobs.Pending }, whole(1, 100_000)),
		entry("jobs.keep", "How long a job and its result can be looked up after it ended.",
			func(c *Config) *time.Duration { return &c.Limits.Jobs.Keep }, duration(time.Minute, 365*day, noMore)),
		entry("jobs.serve", "Whether ken serve runs jobs; false: only ken worker does.",
			func(c *Config) *bool { return &c.Limits.Jobs.Serve }, boolean()),
		entry("results.keep", "How long a stored result can be read.",
			func(c *Config) *time.Duration { return &c.Results.Keep }, duration(time.Second, 365*day, noMore)),
		entry("results.perSession", "How many results of one session are kept; the oldest go first.",
			func(c *Config) *int { return &c.Results.PerSession }, whole(1, 100_000)),
		entry("results.maxBytes", "Maximum bytes kept of one result.",
			func(c *Config) *int64 { return &c.Results.MaxBytes }, size[int64](kib, 16*gib)),
		entry("results.maxTotal", "Maximum bytes of all results together; the oldest go first.",
			func(c *Config) *int64 { return &c.Results.MaxTotal }, size[int64](mib, 1024*gib)),
		entry("results.bucket", "Where replicas keep results that are longer than 32 KiB: empty for PostgreSQL, or an S3-compatible bucket, as in s3://BUCKET/PREFIX?endpoint=URL&region=REGION. The keys are the secrets AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
			func(c *Config) *string { return &c.Results.Store }, text(func(s string) (string, error) {
				if s == "" {
					return "", nil
				}
				_, err := objectstore.Parse(s)
				return "leave it empty to keep them in PostgreSQL", err
			})),
	}
}

func toolSettings() []setting[Config] {
	return []setting[Config]{
		entry("shell.env", "Names of environment variables that shell commands receive, as in [LANG, TZ]. Ken sets PATH, HOME and variables that keep commands from prompting (PAGER, TERM, …) itself and rejects them here.",
			func(c *Config) *[]string { return &c.Shell.Env }, texts("names", subset, nil).each(checkPassed)),
		entry("shell.hosts", "Hosts that shell commands may reach, as in [api.example.com, \"*.example.org:8443\"]; *. matches one level.",
			func(c *Config) *[]string { return &c.Shell.Hosts }, texts("hosts", subset, nil)),
		entry("extensions.path", "Folders in which Ken looks for programs of extensions; empty: the usual system folders.",
			func(c *Config) *[]string { return &c.Extensions.Path }, folders()),
		entry("extensions.review", "Whether an extension waits until you accept its permissions: required, or off (skip the review).",
			func(c *Config) *Review { return &c.Extensions.Review }, word(ReviewRequired, ReviewOff)),
	}
}

// networks is a list of ranges of addresses.
func networks() kind[[]string] {
	k := texts("ranges of addresses", subset, nil)
	plainly := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) ([]string, bool) {
		list, ok := plainly(r, at, v)
		for i, text := range list {
			if _, err := netip.ParsePrefix(text); err != nil {
				where := spot{fmt.Sprintf("%s[%d]", at.key, i), at.line}
				r.fault(where, "bad-network", "write a range, as in 127.0.0.0/8 or 192.168.1.7/32", "%s %s is no range of addresses", where.key, plain(text))
				ok = false
			}
		}
		return list, ok
	}
	return k
}
