// Package confine is the inner half of the sandbox: the code that runs in the
// helper process, between the runtime that wants a tool run and the tool.
//
// The helper is the runtime's own binary, started under [Name] in fresh
// namespaces. It reads an [Order], builds the confinement, forks the tool into
// it, stays behind as its init, and tells the runtime how it ended. Whatever
// goes wrong before the tool runs is said on the control socket and ends the
// helper with status 126: the tool was then never started.
//
// It imports as little as it can, because its start is part of every call.
package confine

// Name is argv[0] of a helper process; CanaryName that of a canary, which runs
// inside the confinement and tries to get out; HoldName that of a process that
// does nothing but keep a user namespace alive until its stdin ends; NestName
// that of one that starts helpers for a large runtime; TrialName that of one
// that finds out whether system calls return or kill the process.
const (
	Name       = "ken-sandbox"
	CanaryName = "ken-sandbox-canary"
	HoldName   = "ken-sandbox-hold"
	NestName   = "ken-sandbox-nest"
	TrialName  = "ken-sandbox-trial"
)

// VictimEnv is in the environment of a process that a canary tries to read.
const VictimEnv = "KEN_CANARY_VICTIM"

// CanaryLimit is how many files a canary lets its victim open.
const CanaryLimit = 77

// ControlFD is a SEQPACKET socket to the runtime. Its end means: kill all and
// leave.
const ControlFD = 3

// ToolUID is the user id of a tool if Ken runs as root. It belongs to no user of
// the system, differs from the overflow id 65534, and is outside the range of
// service managers.
const ToolUID = 65533

// MaxHandles is how many descriptors may come with an order: the tool's three
// streams, a file that holds the [Order], and what the order refers to
// by number, counted from 1.
const MaxHandles = 250

// FailedStatus is how a helper exits that did not start its tool.
const FailedStatus = 126

// What the runtime says on the control socket of a helper, one byte a packet.
// To a nest it says the [Shape] of the helper it wants.
const (
	SayGo   = 'g' // here is your order
	SayTerm = 't' // send the tool SIGTERM
)

// A Shape is how a helper is cloned; it must be that of the order it gets.
type Shape byte

// What a shape consists of. The open ones mean something only in namespaces:
// with OpenFiles the helper, and so the tool, is whom the runtime is, and with
// OpenNetwork it stays in the runtime's network.
const (
	Namespaces Shape = 1 << iota
	OpenFiles
	OpenNetwork
)

// An Order tells a helper what to run and how to confine it. Nothing in it is
// decided here: the writer has decided.
type Order struct {
	Path string   // absolute; ignored when Self
	Args [][]byte // argv, the name first: bytes, which need not be UTF-8
	Env  [][]byte
	Self bool // run the helper's own binary, as a canary

	Namespaces bool // the helper was cloned into its own: build a root, be init
	Landlock   bool
	Seccomp    bool
	Network    bool // make a listener for the egress proxy, allow inet sockets

	UnixSockets bool // allow unix sockets

	OpenFiles   bool     // the host's tree is the tool's root
	OpenNetwork bool     // the host's network is the tool's
	Pin         []string // directories that stay where they are, outer ones first
	Hide        []string // files and directories that are shown empty

	Files  []File  // files that exist only in the root
	Covers []Cover // what the root shows differently from the host, outer ones first

	Dir      string   // where the tool starts
	DirFD    int      // its handle, where there is no root of our own
	WorkFD   int      // that of the work directory, there
	WorkRead bool     // the work directory is read-only
	Mounts   []Mount  // what the root holds
	Links    []Link   // symbolic links in it
	Scratch  int64    // bytes /tmp may hold
	Read     []string // Landlock: read and execute beneath
	Write    []string // Landlock: everything beneath

	Limits []Limit
	// Memory is how much the tool and everything it starts may use together; 0:
	// it is not watched.
	Memory int64
	// Processes is how many tasks the tool may have; 0 sets no such limit.
	Processes uint64
}

// A Mount is one thing of the host that the tool's root shows.
type Mount struct {
	Source string
	Target string
	FD     int    // a detached mount to use instead of Source
	Dev    uint64 // where set, Source must be this very inode
	Ino    uint64
	Write  bool
	Device bool
	Maybe  bool // absent is no error
}

// A File is a small file that is created in the tool's root.
type File struct {
	Path string
	Text string
}

// A Cover is a file or directory of a mount that the tool sees differently.
type Cover struct {
	Path string
	Dev  uint64 // it must be exactly this inode
	Ino  uint64
	As   CoverAs
}

// CoverAs says how something is covered.
type CoverAs int

// The ways to cover. None can be renamed or removed.
const (
	Pinned CoverAs = iota // as it is
	Frozen                // read-only, with all that is in it
	Masked                // empty and inaccessible
)

// A Link is a symbolic link in the tool's root.
type Link struct {
	Path   string
	Target string
}

// A Limit is one setrlimit. A Hard of zero means Value.
type Limit struct {
	Resource int
	Value    uint64
	Hard     uint64
}

// A Message is what a helper says, one a packet, exactly one field
// set. Listening comes with the listener's descriptor.
type Message struct {
	Listening *Listening
	Started   *Started
	Failed    *Failed
	Ended     *Ended
	Hatched   *Hatched // a nest's only one
}

// Listening says where in the tool's network the egress proxy is reached.
type Listening struct {
	Port int
}

// Started says that the tool runs, and what holds it.
type Started struct {
	LandlockABI int
	Seccomp     bool
	Missing     []string
}

// Failed says that the tool was not started, and which layer was to blame.
type Failed struct {
	Layer string
	Cause string
	Errno int
}

// Ended says how the tool's own process ended. What it left behind is killed.
type Ended struct {
	Code   int // -1 when Signal is set
	Signal int // 0 when it exited
	UserUS int64
	SysUS  int64
	RSSKB  int64
	// Starved says that all processes were ended because they used more than
	// [Order.Memory].
	Starved bool
}

// Hatched says which process is the helper a nest was asked for. With 0 there
// is none: the runtime that tries by itself will see why.
type Hatched struct {
	PID int
}

// An Attempt is what came of one try to get out: an empty Stopped means that
// the canary did it.
type Attempt struct {
	Name    string `json:"name"`
	Stopped string `json:"stopped,omitempty"`
}
