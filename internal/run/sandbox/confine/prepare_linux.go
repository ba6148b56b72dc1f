package confine

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prepare turns an order into the list of steps the child will take, last
// layer last: each layer must still be allowed to set up the next.
func prepare(o *Order, port int) (*spawn, *Started, error) {
	s, started := new(spawn), new(Started)
	s.add("session", unix.SYS_SETSID)
	if o.DirFD != 0 {
		s.add("work directory", unix.SYS_FCHDIR, uintptr(o.DirFD))
	} else {
		dir, err := s.text(o.Dir)
		if err != nil {
			return nil, nil, err
		}
		s.add("work directory", unix.SYS_CHDIR, dir)
	}
	limits(s, o)
	surrender(s, kept(o))
	self, err := ownBinary(o)
	if err != nil {
		return nil, nil, err
	}
	if o.Landlock {
		if err := landlock(s, o, self, started); err != nil {
			return nil, nil, fmt.Errorf("landlock: %w", err)
		}
	}
	s.maybe("close", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
	if !o.OpenFiles {
		s.add("umask", unix.SYS_UMASK, 0o022)
	}
	// Handlers first: with the mask open, none of ours may run in the child.
	usual := hold(s, new([4]uint64)) // a struct sigaction of zeros: SIG_DFL
	for signal := uintptr(1); signal <= 64; signal++ {
		s.maybe("signals", unix.SYS_RT_SIGACTION, signal, usual, 0, 8)
	}
	s.add("signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, hold(s, new(uint64)), 0, 8)
	if o.Seccomp {
		if err := seccomp(s, o, started); err != nil {
			return nil, nil, err
		}
	}
	return s, started, become(s, o, self, port)
}

// limits sets the order's rlimits. RLIMIT_NPROC counts every task of the user
// in the user namespace, us among them; so those are added.
func limits(s *spawn, o *Order) {
	list := o.Limits
	if o.Processes > 0 {
		list = append(list, Limit{Resource: unix.RLIMIT_NPROC, Value: o.Processes + tasks(o.Namespaces)})
	}
	for _, l := range list {
		r := &[2]uint64{l.Value, max(l.Value, l.Hard)}
		var now unix.Rlimit // what holds already holds on, where it is less
		if unix.Getrlimit(l.Resource, &now) == nil {
			r[0], r[1] = min(r[0], now.Max), min(r[1], now.Max)
		}
		s.add("limit "+strconv.Itoa(l.Resource), unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), hold(s, r), 0)
	}
}

// tasks counts the tasks that exist before the tool and are charged to the
// same account: our own threads, and without a user namespace all of the user's.
func tasks(own bool) uint64 {
	if own {
		entries, _ := os.ReadDir("/proc/self/task")
		return uint64(max(len(entries), 4) + 2) // the Go runtime may start a thread or two more
	}
	uid, n := uint32(os.Getuid()), 2
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var st unix.Stat_t
		if e.Name()[0] > '9' || unix.Stat("/proc/"+e.Name(), &st) != nil || st.Uid != uid {
			continue
		}
		threads, _ := os.ReadDir("/proc/" + e.Name() + "/task")
		n += len(threads)
	}
	return uint64(n)
}

// rootsFiles is what root is among files and its own processes.
const rootsFiles = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL

// kept are the capabilities a tool keeps: none, but that root stays root where
// files are as they were. Nothing there reaches the mounts or the helper.
func kept(o *Order) uint64 {
	if !o.OpenFiles || os.Getuid() != 0 {
		return 0
	}
	var have [2]unix.CapUserData
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(header, &have[0]); err != nil {
		return 0
	}
	return rootsFiles & uint64(have[0].Permitted)
}

// surrender drops every capability but those in keep for good, and prevents the
// process from gaining new ones.
func surrender(s *spawn, keep uint64) {
	for c := range uintptr(64) {
		if keep>>c&1 == 0 {
			s.maybe("bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c)
		}
	}
	s.maybe("ambient set", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL)
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	left := &[2]unix.CapUserData{{Effective: uint32(keep), Permitted: uint32(keep)}}
	s.add("capabilities", unix.SYS_CAPSET, hold(s, header), hold(s, left))
	s.add("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
}

// ownBinary opens the helper's binary for a canary, which may not be able to
// reach it by path; -1 when the order is for a tool.
func ownBinary(o *Order) (int, error) {
	if !o.Self {
		return -1, nil
	}
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open own binary: %w", err)
	}
	return fd, nil
}

func landlock(s *spawn, o *Order, self int, started *Started) error {
	abi := LandlockABI()
	if abi == 0 {
		return unix.ENOSYS
	}
	if o.OpenFiles {
		return fence(s, o, abi, started)
	}
	rules, err := grants(o, abi, self)
	if err != nil {
		return err
	}
	started.LandlockABI = abi
	s.add("landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules.fd), 0)
	return nil
}

func seccomp(s *spawn, o *Order, started *Started) (err error) {
	if !seccompServed {
		return fmt.Errorf("seccomp: no filter for this architecture")
	}
	f := seccompFilter(o.Network, o.OpenNetwork, o.UnixSockets, !o.Namespaces, o.Memory > 0)
	if o.OpenFiles {
		f = openFilter(o.Network, o.OpenNetwork, o.Namespaces || started.LandlockABI > 0)
	} else if !o.Namespaces {
		if s.broker, err = newBroker(o); err != nil {
			return fmt.Errorf("broker: %w", err)
		}
	}
	prog := &unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	hold(s, &f[0])
	s.add("seccomp", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, hold(s, prog))
	started.Seccomp = true
	return nil
}

// become adds the exec.
func become(s *spawn, o *Order, self, port int) error {
	env := o.Env
	if o.Network {
		proxy := "http://127.0.0.1:" + strconv.Itoa(port)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
			env = append(env, []byte(name+"="+proxy), []byte(strings.ToLower(name)+"="+proxy))
		}
	}
	argv, err := s.vector(o.Args)
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	envp, err := s.vector(env)
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if self >= 0 {
		empty, err := s.text("")
		if err != nil {
			return err
		}
		s.add("exec", unix.SYS_EXECVEAT, uintptr(self), empty, argv, envp, unix.AT_EMPTY_PATH)
		return nil
	}
	path, err := s.text(o.Path)
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	s.add("exec", unix.SYS_EXECVE, path, argv, envp)
	return nil
}
