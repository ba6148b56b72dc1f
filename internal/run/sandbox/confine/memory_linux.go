package confine

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// starved is set once the tool was ended for its memory.
var starved atomic.Bool

const (
	memoryPause   = 20 * time.Millisecond  // between two checks of a tool that is near its limit
	memoryFar     = 250 * time.Millisecond // between two checks of a tool that is far from it
	memoryLongest = time.Second            // on a busy machine one check can take seconds
	memoryGC      = 200                    // how many checks happen between two garbage collections of the helper, which does not run its own
	memoryDrop    = 40                     // how many checks happen between two calls of dropCodePages

	// How much memory the tool can start to use in a second: per processor, and
	// on a machine with many.
	memoryRate    = 2 << 30
	memoryMaxRate = 16 << 30
)

// watchMemory ends the tool and everything it started when together they use
// more than limit: private memory, shared memory (mapped or in unnamed files),
// and the contents of /tmp. It is used if no cgroup counts the memory. The next
// check comes when the tool could have reached the limit, so that a server which
// does nothing costs next to nothing, but never sooner than memoryPause and ten
// times as long as a check takes; so the limit may be exceeded for a moment. The
// filter refuses unnamed files and uninspectable processes, whose memory could
// not be counted.
func watchMemory(pid int, limit int64, namespaces, open bool) {
	pause := memoryPause
	seen := map[int]bool{} // every process of the tool, also those that have ended
	init := namespaces && os.Getpid() == 1
	for look := 1; ; look++ {
		time.Sleep(pause)
		start := time.Now()
		pids := descendants(init)
		// With open files, or without namespaces, the tool shares /tmp and System V
		// memory with the machine: only segments that it created are its own. In a
		// PID namespace they are known by their creator, also when it has ended: what
		// was created outside has none there.
		own := namespaces && !open
		for _, p := range pids {
			seen[p] = true
		}
		created := func(creator int) bool { return own || init && creator != 0 || seen[creator] }
		now := used(pids, created, own, false)
		if now > limit {
			now = used(pids, created, own, true)
		}
		if now > limit {
			starved.Store(true)
			if init {
				unix.Kill(-1, unix.SIGKILL)
			} else {
				for _, p := range append(descendants(init), pid) {
					unix.Kill(p, unix.SIGKILL)
				}
			}
			return
		}
		if look%memoryGC == 0 {
			runtime.GC()
		}
		if look%memoryDrop == 0 {
			dropCodePages()
		}
		pause = pauseAfter(limit-now, time.Since(start), runtime.NumCPU())
	}
}

// pauseAfter returns how long to wait until the next check, when left bytes are
// left until the limit, and the last check took a certain time.
func pauseAfter(left int64, took time.Duration, processors int) time.Duration {
	rate := min(memoryRate*int64(processors), memoryMaxRate) >> 20
	reach := time.Duration(left>>20) * time.Second / time.Duration(rate)
	return min(max(memoryPause, min(reach, memoryFar), 10*took), memoryLongest)
}

// descendants lists our descendant processes, from /proc. With init we are the
// first process of a PID namespace: all others in it are ours.
func descendants(init bool) []int {
	me := os.Getpid()
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	var list []int
	parents := map[int]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if init {
			if pid != me {
				list = append(list, pid)
			}
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// The name may contain anything, so fields are counted from its end.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) > 1 {
			parents[pid], _ = strconv.Atoi(string(f[1]))
		}
	}
	for pid := range parents {
		for at, depth := pid, 0; at > 0 && depth < 4096; at, depth = parents[at], depth+1 {
			if at == me && pid != me {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

// used returns the sum of the memory of processes. The rough sum counts shared
// memory for each process, so it is never too low; the exact sum counts it
// once. System V memory counts if its creator does, and with own the contents of
// /tmp.
func used(pids []int, created func(creator int) bool, own, exactly bool) int64 {
	var sum int64
	files := map[inode]int64{} // unnamed files, or files that are not mapped
	for _, pid := range pids {
		unnamed(pid, files)
	}
	for _, pid := range pids {
		size, ok := int64(0), false
		if exactly {
			size, ok = share(pid, files)
		}
		if !ok {
			size = rough(pid)
		}
		sum += size
	}
	for _, size := range files {
		sum += size
	}
	sum += unattached(created)
	if own {
		var st unix.Statfs_t
		if unix.Statfs("/tmp", &st) == nil && st.Type == unix.TMPFS_MAGIC {
			sum += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	return sum
}

type inode struct{ dev, ino uint64 }

// unnamed adds the in-memory files that a process has open.
func unnamed(pid int, files map[inode]int64) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, err := os.Readlink(dir + e.Name())
		if err != nil || !shared(name) {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(dir+e.Name(), &st) == nil {
			files[inode{uint64(st.Dev), st.Ino}] = st.Blocks * 512
		}
	}
}

// shared reports whether a kernel file name stands for memory of an invisible
// file system.
func shared(name string) bool {
	return strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/dev/zero (deleted)") || strings.HasPrefix(name, "/SYSV")
}

// rough returns the memory of a process that belongs to no file.
func rough(pid int) int64 {
	return fields("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon:", "RssShmem:", "VmSwap:")
}

// share returns a process's private memory and its part of shared memory,
// without the files that are counted separately.
func share(pid int, files map[inode]int64) (int64, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	data, err := os.ReadFile(dir + "/smaps")
	if err != nil {
		return 0, false
	}
	sum := fields(dir+"/smaps_rollup", "Pss_Anon:", "SwapPss:")
	counts := false
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) >= 5 && bytes.IndexByte(f[0], '-') > 0 && !bytes.HasSuffix(f[0], []byte(":")) {
			counts = false
			if len(f) > 5 && shared(string(bytes.Join(f[5:], []byte(" ")))) {
				counts = !known(files, f[3], f[4])
			}
		} else if counts && len(f) >= 2 && string(f[0]) == "Pss:" {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			sum += n << 10
		}
	}
	return sum, true
}

// known reports whether a mapping belongs to a file that is counted separately.
func known(files map[inode]int64, dev, ino []byte) bool {
	major, minor, _ := strings.Cut(string(dev), ":")
	ma, err1 := strconv.ParseUint(major, 16, 32)
	mi, err2 := strconv.ParseUint(minor, 16, 32)
	n, err3 := strconv.ParseUint(string(ino), 10, 64)
	if errors.Join(err1, err2, err3) != nil {
		return false
	}
	_, ok := files[inode{unix.Mkdev(uint32(ma), uint32(mi)), n}]
	return ok
}

// unattached returns the size of System V shared memory that no process has
// mapped and whose creator counts.
func unattached(counts func(creator int) bool) int64 {
	data, _ := os.ReadFile("/proc/sysvipc/shm")
	var sum int64
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) < 16 || string(f[6]) != "0" {
			continue
		}
		if creator, err := strconv.Atoi(string(f[4])); err != nil || !counts(creator) {
			continue
		}
		for _, n := range f[14:16] {
			v, _ := strconv.ParseInt(string(n), 10, 64)
			sum += v
		}
	}
	return sum
}

// fields sums the named numbers of kilobytes in a file.
func fields(file string, names ...string) int64 {
	data, _ := os.ReadFile(file)
	var sum int64
	for line := range bytes.Lines(data) {
		for _, name := range names {
			if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
				if f := bytes.Fields(rest); len(f) > 0 {
					n, _ := strconv.ParseInt(string(f[0]), 10, 64)
					sum += n << 10
				}
			}
		}
	}
	return sum
}
