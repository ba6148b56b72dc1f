package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

// beneath returns the processes below one, with their command lines.
func beneath(t testing.TB, top int) map[int]string {
	t.Helper()
	parents, lines := map[int]int{}, map[int]string{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Skip("cannot here: this system does not show its processes")
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 20 {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
		line, _ := os.ReadFile(dir + "/cmdline")
		lines[pid] = fields[19] + " " + strings.ReplaceAll(string(line), "\x00", " ") // with when it began
	}
	out := map[int]string{}
	for pid := range parents {
		for at := pid; at > 1; at = parents[at] {
			if at == top {
				out[pid] = lines[pid]
				break
			}
		}
	}
	return out
}

// gone waits until none of the processes is there.
func gone(t testing.TB, list map[int]string) {
	t.Helper()
	testkit.Wait(t, "no process is left", func() bool {
		for pid, line := range list {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			began, _, _ := strings.Cut(line, " ")
			if err == nil && strings.Contains(string(stat), " "+began+" ") && !strings.Contains(string(stat), ") Z ") {
				return false
			}
		}
		return true
	})
}

// leftovers returns what is in the work directories besides saved files.
func leftovers(t testing.TB, r *rig) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.dir, "extensions", "*", "work", ".*"))
	executortest.Must(t, err)
	return names
}

// TestBrowserLeavesNothing: after runs that end well, and after any process of a
// browser was killed, no process and no folder is left, and the next call works.
func TestBrowserLeavesNothing(t *testing.T) {
	needChromium(t)
	r, s := newRig(t, nil), newSite(t)
	one := func(session string) map[int]string {
		r.do(t, session, "open", object{"url": s.URL + "/two"})
		r.mu.Lock()
		defer r.mu.Unlock()
		for k, i := range r.browsers {
			if k.session == session {
				list := beneath(t, i.process.Pid())
				if len(list) < 4 {
					t.Fatalf("a browser has %d processes: %v", len(list), list)
				}
				return list
			}
		}
		t.Fatal("there is no browser")
		return nil
	}
	for n := range 3 {
		session := fmt.Sprint("run", n)
		list := one(session)
		if n%2 == 0 {
			r.do(t, session, "download", object{"url": s.URL + "/file.csv"}) // which makes a folder
		}
		r.do(t, session, "close", nil)
		gone(t, list)
	}
	for n := range 4 {
		session := "killed"
		list := one(session)
		var pids []int
		for pid, line := range list {
			if strings.Contains(line, "chromium") || strings.Contains(line, "chrome") {
				pids = append(pids, pid)
			}
		}
		victim := pids[n%len(pids)]
		process, err := os.FindProcess(victim)
		if err == nil {
			err = process.Kill()
		}
		executortest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = r.Invoke(ctx, call(session, "read", nil)) // whatever that gives
		cancel()
		t.Logf("killed %.60s: %v", list[victim], err)
		has(t, "after a kill", r.do(t, session, "open", object{"url": s.URL + "/two"}), "second page")
		r.do(t, session, "close", nil)
		gone(t, list)
	}
	list := one("last")
	r.Close()
	gone(t, list)
	if names := leftovers(t, r); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// TestBrowserSweep: the folder of a Ken that was killed is removed when the next
// browser starts, and that of one that runs stays.
func TestBrowserSweep(t *testing.T) {
	work, err := os.OpenRoot(t.TempDir())
	executortest.Must(t, err)
	defer work.Close()
	mine := &room{work: work}
	if _, err := mine.folder("in"); err != nil {
		t.Fatal(err)
	}
	dead := strings.Replace(mine.name, roomPrefix+strconv.Itoa(os.Getpid()), roomPrefix+"1", 1) // process 1 began at another moment
	for _, name := range []string{dead, "downloads", ".other", roomPrefix + "nobody"} {
		executortest.Must(t, work.Mkdir(name, 0o700))
	}
	sweep(work)
	for name, want := range map[string]bool{mine.name: true, dead: false, "downloads": true, ".other": true, roomPrefix + "nobody": true} {
		if _, err := work.Stat(name); (err == nil) != want {
			t.Errorf("after sweep %s is there: %v, want %v", name, err == nil, want)
		}
	}
	mine.remove()
	if _, err := work.Stat(mine.name); mine.name != "" || err == nil {
		t.Error("remove left the folder")
	}
}
