package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Requirement says how much isolation a run must have to be allowed at all.
type Requirement string

// The requirements. The zero value is RequireLandlock.
const (
	RequireFull     Requirement = "require-full"
	RequireLandlock Requirement = "require-landlock"
	BestEffort      Requirement = "best-effort" // whatever there is, and say so
	Off             Requirement = "off"         // no isolation, only limits
)

// A Spec describes one run. Run does not keep or change it.
type Spec struct {
	// Path is the program, absolute and resolved by the caller; Args is argv
	// with the name first. There is no shell and no search.
	Path string
	Args []string

	// Work is the work directory, held open: what is at its path when the tool
	// starts does not matter on Linux as root, and elsewhere an exchanged
	// directory is refused. The tool starts in it, may write in it, and has
	// its HOME there. It stays the caller's to close. With [Open.Files] it may
	// be nil, and is nothing but where the tool starts.
	Work *os.Root

	// ReadOnly makes Work read-only for the tool.
	ReadOnly bool

	// Dir is where the tool starts instead: a directory within Work, named from
	// there, or an absolute one within Work or a path of Read or Write; with
	// [Open.Files] any that is not hidden.
	Dir string

	// Protect names files and directories within Work, from there, or by their
	// absolute names within a path of Write, which has no link in it, that the
	// tool sees and cannot write to, rename or remove, nor the directories they
	// lie in. That takes the full profile: in others the run is refused where
	// isolation is required, and else the Isolation says so, as it does of
	// names that are not there: a tool can make those, and [Outcome.Made] then
	// lists them. Other hard links to a protected file are not protected, and
	// nothing can be renamed across the border of a directory that holds a
	// protected name. A link that is protected cannot be replaced; what it leads
	// to needs a name of its own.
	Protect []string

	// Mask names files and directories in the same way, also within a path of
	// Read, that the tool can neither read nor change: they appear empty and
	// inaccessible. Like Protect, it needs the full profile. Other hard links
	// to a masked file are not masked; symbolic links lead to the mask.
	Mask []string

	// Watch names more of them, in the same way, that are not protected:
	// [Outcome.Made] lists those that a tool made, under any profile.
	Watch []string

	// Env is the whole environment, as NAME=value. Nothing of the runtime's
	// own is added but HOME and PATH where absent, and the proxy's address
	// where there is an Egress. With [Open.Files] no HOME is added.
	Env []string

	// Read and Write are further paths the tool may see, absolute. System is
	// what programs need to run at all; nil means [SystemPaths].
	Read, Write, System []string

	// Egress serves the tool's way out. Nil means no network at all.
	Egress Egress

	// Open is what is not held at all. Its zero value holds everything.
	Open Open

	Limits Limits

	Stdin io.Reader // nil is empty
	// StdinFile and StdoutFile are handed to the tool as they are, instead of
	// Stdin and Stdout: nothing stands between it and the other end, and
	// nothing of it is kept, counted or shown in Live. They should be ends of
	// pipes: what a tool gets so it has, whatever else is held from it. They
	// stay the caller's, who closes them once [Start] has returned.
	StdinFile, StdoutFile *os.File
	// Live gets stdout and stderr as they come, Stdout and Stderr each its
	// stream; none of them is cut. A writer that fails is not written to
	// again; one that blocks holds the tool up until its time is over.
	Live, Stdout, Stderr io.Writer

	Require Requirement

	self bool // the canary, not Path
}

// Open says what a program is not held from: one that is trusted to run as it
// ran before, such as a server that a person uses already. It then has no more
// privileges than they, and cannot gain any; it cannot reach processes that are
// not its own, and none of its own outlives it. Everything that stays open is
// told in [Isolation.Missing].
type Open struct {
	// Files leaves it the files of the person who runs Ken, to read and to
	// write as far as their own rights go, under their own user: HOME, caches,
	// /tmp. Read, Write and System then add nothing, and Protect and Watch are
	// refused.
	//
	// Root stays root over files and its own processes, and over nothing else:
	// in the full profile block devices and memory devices that were there when
	// it began are hidden, and /sys and the settings in /proc are read-only. To
	// anyone but root files of other users appear unowned.
	Files bool

	// Network leaves it the host's network, unix sockets among it: daemons that
	// act for any caller can be asked.
	Network bool

	// UnixSockets lets it make unix sockets, by which its processes speak with
	// each other. It reaches those in the paths that it is granted. In the
	// landlock profile, in which it would reach those of the whole machine, the
	// run is refused.
	UnixSockets bool

	// Hide names files and directories, absolute, that are shown empty and
	// cannot be changed, whatever Files leaves; links to them are followed when
	// the run begins. No directory on the way to one can be renamed, but those
	// at the top of the tree by root; nor can anything be renamed across the
	// border of one. That takes the full profile; in others the Isolation says
	// that they are seen, and only [RequireFull] refuses. It says so too of
	// names that are not there: what is made there later is seen. Other hard
	// links and other mounts of the same files are not hidden. Without Files
	// nothing that is granted may hold them.
	Hide []string
}

// An Egress lets a tool reach the network, or not. Serve accepts connections
// on the listener, which lies in the tool's own network, as an HTTP proxy; it
// owns the file, and returns soon after ctx ends.
type Egress interface {
	Serve(ctx context.Context, listener *os.File) error
}

// Limits bound a run. A zero field means the default in brackets; a negative
// one means no limit.
//
// Memory limits all processes of a run together: private memory, shared memory,
// in-memory files, and the contents of /tmp. A cgroup enforces it if there is
// one. Otherwise the helper watches the run and ends it, and no process may
// allocate more for itself, used or not (RLIMIT_DATA). Programs built with an
// address sanitizer reserve terabytes and need a Memory of -1. If the machine
// runs out of memory, the kernel kills tools first.
type Limits struct {
	Wall         time.Duration // from start to end [300 s]
	Grace        time.Duration // between SIGTERM and SIGKILL when stopped [none: SIGKILL at once]
	CPU          time.Duration // of each process, to the second [Wall]
	Memory       int64         // bytes, of the whole tree [half of the machine's]
	AddressSpace int64         // bytes of each process [none]
	Processes    int64         // tasks at once, threads too [512]
	OpenFiles    int64         // of each process [1024]
	FileSize     int64         // bytes of one file [1 GiB]
	Disk         int64         // bytes of the work directory [none]
	Scratch      int64         // bytes of /tmp in the full profile [64 MiB]
	Output       int64         // bytes kept of each stream, half head, half tail [1 MiB]
	OutputStop   int64         // bytes of both streams at which the run is stopped [none]
}

const (
	mib = 1 << 20

	defaultProcesses = 512

	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

func (l Limits) filled() Limits {
	set := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	if l.Wall == 0 {
		l.Wall = 300 * time.Second
	}
	if l.CPU == 0 {
		l.CPU = l.Wall
	}
	set(&l.Processes, defaultProcesses)
	set(&l.OpenFiles, 1024)
	set(&l.FileSize, 1024*mib)
	set(&l.Scratch, 64*mib)
	set(&l.Output, mib)
	if l.Scratch < 0 {
		l.Scratch = 64 * mib // memory of the machine: never without bound
	}
	if l.Memory > 0 {
		l.Scratch = min(l.Scratch, l.Memory) // /tmp is in memory
	}
	return l
}

// SystemPaths lists the places of programs and libraries and the part of /etc
// that programs need. The machine's users are not included: in the full
// profile, a tool has its own passwd and group, which contain only itself.
// Missing paths do no harm.
func SystemPaths() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ssl", "/etc/pki", "/etc/ld.so.cache",
		"/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/host.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/protocols", "/etc/services", "/etc/localtime", "/etc/timezone",
		"/etc/mime.types", "/etc/magic", "/etc/terminfo", "/etc/inputrc", "/etc/bash.bashrc", "/etc/profile",
		"/etc/python3", "/etc/perl", "/etc/java", "/etc/fonts", "/etc/gitconfig", "/etc/os-release", "/etc/debian_version",
	}
}

// filled returns a checked copy with every default in its place.
func (s Spec) filled() (Spec, error) {
	if s.Work == nil && !s.Open.Files {
		return s, errors.New("missing work directory: open one with os.OpenRoot and set Spec.Work")
	}
	if s.Work != nil && workPath(s.Work) == "/" && !s.Open.Files {
		return s, errors.New("the work directory is /: use a separate directory")
	}
	if !s.self {
		if !filepath.IsAbs(s.Path) || filepath.Clean(s.Path) != s.Path || !utf8.ValidString(s.Path) {
			return s, fmt.Errorf("program %q is not a clean absolute path: resolve it first", s.Path)
		}
		if len(s.Args) == 0 {
			return s, errors.New("missing arguments: Args begins with the program's name")
		}
	}
	switch s.Require {
	case "":
		s.Require = RequireLandlock
	case RequireFull, RequireLandlock, BestEffort, Off:
	default:
		return s, fmt.Errorf("unknown requirement %q: use require-full, require-landlock, best-effort or off", s.Require)
	}
	if s.System == nil {
		s.System = SystemPaths()
	}
	for _, list := range [][]string{s.System, s.Read, s.Write} {
		for _, p := range list {
			if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || !utf8.ValidString(p) {
				return s, fmt.Errorf("path %q cannot be granted: use a clean absolute path below /", p)
			}
		}
	}
	if err := s.checkInside(); err != nil {
		return s, err
	}
	if err := s.checkOpen(); err != nil {
		return s, err
	}
	s.Limits = s.Limits.filled()
	home := ""
	if !s.Open.Files {
		home = workPath(s.Work)
	}
	var err error
	s.Env, err = environment(s.Env, home)
	return s, err
}

// checkOpen checks what is left open, and the streams that are.
func (s *Spec) checkOpen() error {
	if s.StdinFile != nil && s.Stdin != nil || s.StdoutFile != nil && s.Stdout != nil {
		return errors.New("a stream has both a file and a reader or writer: set one of them")
	}
	if s.Open.Network && s.Egress != nil {
		return errors.New("an open network needs no egress: set one of Open.Network and Egress")
	}
	if s.Open.Files && len(s.Protect)+len(s.Watch)+len(s.Mask) > 0 {
		return errors.New("fields Protect, Mask and Watch are not available with Open.Files: use Open.Hide")
	}
	if s.Work == nil && s.Limits.Disk > 0 {
		return errors.New("a disk limit needs a work directory: set Spec.Work")
	}
	for _, p := range s.Open.Hide {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || !utf8.ValidString(p) {
			return fmt.Errorf("path %q cannot be hidden: use a clean absolute path below /", p)
		}
		if within(s.Dir, p) || within(s.Path, p) {
			return fmt.Errorf("%s cannot be hidden: the tool is in it or starts in it", p)
		}
		if s.Open.Files {
			continue
		}
		for _, have := range slices.Concat(s.System, s.Read, s.Write, []string{workPath(s.Work)}) {
			if within(p, have) || within(have, p) {
				return fmt.Errorf("%s cannot be hidden: %s is granted", p, have)
			}
		}
	}
	return nil
}

// checkInside checks Dir, which becomes absolute, and Protect.
func (s *Spec) checkInside() error {
	named := func(list, in []string) (string, bool) {
		for _, p := range list {
			granted := slices.ContainsFunc(in, func(w string) bool { return p != w && filepath.IsAbs(p) && within(p, w) })
			if !filepath.IsLocal(p) && !granted || filepath.Clean(p) != p || p == "." || !utf8.ValidString(p) {
				return p, false
			}
		}
		return "", true
	}
	if p, ok := named(slices.Concat(s.Protect, s.Watch), s.Write); !ok {
		return fmt.Errorf("%q cannot be protected: use a path relative to the work directory, or one below a writable path", p)
	}
	if p, ok := named(s.Mask, slices.Concat(s.Read, s.Write)); !ok {
		return fmt.Errorf("%q cannot be masked: use a path relative to the work directory, or one below a granted path", p)
	}
	work := "/"
	if s.Work != nil {
		work = workPath(s.Work)
	}
	if s.Dir == "" {
		s.Dir = work
	}
	if filepath.IsLocal(s.Dir) {
		s.Dir = filepath.Join(work, s.Dir)
	}
	if !filepath.IsAbs(s.Dir) || filepath.Clean(s.Dir) != s.Dir || !utf8.ValidString(s.Dir) {
		return fmt.Errorf("cannot start in %q: name a directory within the work directory, or a clean absolute path", s.Dir)
	}
	for _, have := range slices.Concat([]string{work}, s.Read, s.Write) {
		if s.Open.Files || within(s.Dir, have) {
			return nil
		}
	}
	return fmt.Errorf("cannot start in %s: it is neither within the work directory nor granted", s.Dir)
}

// environment checks a tool's environment and adds what no tool does without;
// no HOME when home is empty.
func environment(env []string, home string) ([]string, error) {
	out := slices.Clone(env)
	seen := make(map[string]bool, len(env))
	for i, e := range env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.ContainsRune(e, 0) {
			return nil, fmt.Errorf("environment entry %d is not NAME=value", i) // its text may be a secret
		}
		if seen[name] {
			return nil, fmt.Errorf("environment names %s twice", name)
		}
		seen[name] = true
	}
	if !seen["HOME"] && home != "" {
		out = append(out, "HOME="+home)
	}
	if !seen["PATH"] {
		out = append(out, "PATH="+defaultPath)
	}
	return out, nil
}

// workPath is where the work directory was when it was opened, absolute.
func workPath(root *os.Root) string {
	p, err := filepath.Abs(root.Name())
	if err != nil {
		return root.Name()
	}
	return p
}
