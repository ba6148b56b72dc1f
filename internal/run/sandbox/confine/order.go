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
// does nothing but keep a user namespace alive until its stdin ends.
const (
	Name       = "ken-sandbox"
	CanaryName = "ken-sandbox-canary"
	HoldName   = "ken-sandbox-hold"
)

// VictimEnv is in the environment of a process that a canary tries to read.
const VictimEnv = "KEN_CANARY_VICTIM"

// ControlFD is a SEQPACKET socket to the runtime. Its end means: kill all and
// leave.
const ControlFD = 3

// MaxHandles is how many descriptors may come with an order: the tool's three
// streams, a file that holds the [Order] as JSON, and what the order refers to
// by number, counted from 1.
const MaxHandles = 250

// FailedStatus is how a helper exits that did not start its tool.
const FailedStatus = 126

// What the runtime says on the control socket, one byte a packet.
const (
	SayGo   = 'g' // here is your order
	SayTerm = 't' // send the tool SIGTERM
)

// An Order tells a helper what to run and how to confine it. Nothing in it is
// decided here: whoever writes it has decided.
type Order struct {
	Path string   `json:"path"` // absolute; ignored when Self
	Args [][]byte `json:"args"` // argv, the name first: bytes, which need not be UTF-8
	Env  [][]byte `json:"env"`
	Self bool     `json:"self,omitempty"` // run the helper's own binary, as a canary

	Namespaces bool `json:"namespaces,omitempty"` // the helper was cloned into its own: build a root, be init
	Landlock   bool `json:"landlock,omitempty"`
	Seccomp    bool `json:"seccomp,omitempty"`
	Network    bool `json:"network,omitempty"` // make a listener for the egress proxy, allow inet sockets

	Dir     string   `json:"dir"`               // where the tool starts
	DirFD   int      `json:"dir_fd,omitempty"`  // its handle, where there is no root of our own
	Mounts  []Mount  `json:"mounts,omitempty"`  // what the root holds
	Links   []Link   `json:"links,omitempty"`   // symbolic links in it
	Scratch int64    `json:"scratch,omitempty"` // bytes /tmp may hold
	Read    []string `json:"read,omitempty"`    // Landlock: read and execute beneath
	Write   []string `json:"write,omitempty"`   // Landlock: everything beneath

	Limits []Limit `json:"limits,omitempty"`
	// Processes is how many tasks the tool may have; 0 sets no such limit.
	Processes uint64 `json:"processes,omitempty"`
}

// A Mount is one thing of the host that the tool's root shows.
type Mount struct {
	Source string `json:"source"`
	Target string `json:"target"`
	FD     int    `json:"fd,omitempty"`  // a detached mount to use instead of Source
	Dev    uint64 `json:"dev,omitempty"` // where set, Source must be this very inode
	Ino    uint64 `json:"ino,omitempty"`
	Write  bool   `json:"write,omitempty"`
	Device bool   `json:"device,omitempty"`
	Maybe  bool   `json:"maybe,omitempty"` // absent is no error
}

// A Link is a symbolic link in the tool's root.
type Link struct {
	Path   string `json:"path"`
	Target string `json:"target"`
}

// A Limit is one setrlimit. A Hard of zero means Value.
type Limit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
	Hard     uint64 `json:"hard,omitempty"`
}

// A Message is what a helper says, one JSON object a packet, exactly one field
// set. Listening comes with the listener's descriptor.
type Message struct {
	Listening *Listening `json:"listening,omitempty"`
	Started   *Started   `json:"started,omitempty"`
	Failed    *Failed    `json:"failed,omitempty"`
	Ended     *Ended     `json:"ended,omitempty"`
}

// Listening says where in the tool's network the egress proxy is reached.
type Listening struct {
	Port int `json:"port"`
}

// Started says that the tool runs, and what holds it.
type Started struct {
	LandlockABI int      `json:"landlock_abi"`
	Seccomp     bool     `json:"seccomp"`
	Missing     []string `json:"missing,omitempty"`
}

// Failed says that the tool was not started, and which layer was to blame.
type Failed struct {
	Layer string `json:"layer"`
	Cause string `json:"cause"`
	Errno int    `json:"errno,omitempty"`
}

// Ended says how the tool's own process ended. What it left behind is killed.
type Ended struct {
	Code   int   `json:"code"`   // -1 when Signal is set
	Signal int   `json:"signal"` // 0 when it exited
	UserUS int64 `json:"user_us"`
	SysUS  int64 `json:"sys_us"`
	RSSKB  int64 `json:"rss_kb"`
}

// An Attempt is what came of one try to get out: an empty Stopped means that
// the canary did it.
type Attempt struct {
	Name    string `json:"name"`
	Stopped string `json:"stopped,omitempty"`
}
