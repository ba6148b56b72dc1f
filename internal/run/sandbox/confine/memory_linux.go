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
	memoryPause = 20 * time.Millisecond
	memoryGC    = 200 // looks between two collections of our own garbage, which nobody else does
)

// watchMemory ends the tool, and all that it started, when together they use
// more than limit: memory of their own and memory that they share, mapped or in
// files without a name, and what lies in /tmp. It is for where no cgroup counts.
// Looking takes at most about a tenth of its time, so that more may be used for
// a moment. What a process has open that may not be looked into, because its
// program may not be read or it said so, is not counted.
func watchMemory(pid int, limit int64, namespaces bool) {
	pause := memoryPause
	for look := 1; ; look++ {
		time.Sleep(pause)
		start := time.Now()
		pids := descendants()
		if used(pids, namespaces, false) > limit && used(pids, namespaces, true) > limit {
			starved.Store(true)
			if namespaces && os.Getpid() == 1 {
				unix.Kill(-1, unix.SIGKILL)
			} else {
				for _, p := range append(descendants(), pid) {
					unix.Kill(p, unix.SIGKILL)
				}
			}
			return
		}
		if look%memoryGC == 0 {
			runtime.GC()
		}
		pause = max(memoryPause, 10*time.Since(start))
	}
}

// descendants lists the processes that came from us, from /proc.
func descendants() []int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name may hold anything, so fields are counted from its end.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) > 1 {
			parents[pid], _ = strconv.Atoi(string(f[1]))
		}
	}
	me := os.Getpid()
	var list []int
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

// used sums the memory of processes. Roughly, what several of them share counts
// for each, so that it is never less than the truth; exactly, it counts once.
func used(pids []int, namespaces, exactly bool) int64 {
	var sum int64
	files := map[inode]int64{} // without a name, or not mapped
	for _, pid := range pids {
		unnamed(pid, files)
	}
	for _, pid := range pids {
		own, ok := int64(0), false
		if exactly {
			own, ok = share(pid, files)
		}
		if !ok {
			own = rough(pid)
		}
		sum += own
	}
	for _, size := range files {
		sum += size
	}
	if namespaces {
		sum += unattached()
		var st unix.Statfs_t
		if unix.Statfs("/tmp", &st) == nil && st.Type == unix.TMPFS_MAGIC {
			sum += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	return sum
}

type inode struct{ dev, ino uint64 }

// unnamed notes the files in memory that a process has open.
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

// shared reports whether what the kernel names so is memory of a file system
// that nobody sees.
func shared(name string) bool {
	return strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/dev/zero (deleted)") || strings.HasPrefix(name, "/SYSV")
}

// rough is what a process has in memory that is no file's.
func rough(pid int) int64 {
	return fields("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon:", "RssShmem:", "VmSwap:")
}

// share is what a process has of its own, and its part of what it has with
// others, without the files that are counted.
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

// known reports whether a mapping is of a file that is counted.
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

// unattached is memory shared by a key that no process has mapped.
func unattached() int64 {
	data, _ := os.ReadFile("/proc/sysvipc/shm")
	var sum int64
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) < 16 || string(f[6]) != "0" {
			continue
		}
		for _, n := range f[14:16] {
			v, _ := strconv.ParseInt(string(n), 10, 64)
			sum += v
		}
	}
	return sum
}

// fields sums some numbers of kilobytes in a file.
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
