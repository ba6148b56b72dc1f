//go:build unix

package statusfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ken/internal/run/mcpgateway"
)

// TestStatusFile: a file is for the user alone, is written when the status
// changes, and counts only while the process that wrote it runs.
func TestStatusFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "status")
	w := NewWriter(dir)
	update := func(st mcpgateway.Status) {
		t.Helper()
		if err := w.Update([]mcpgateway.Status{st}); err != nil {
			t.Fatal(err)
		}
	}
	update(mcpgateway.Status{Name: "s", State: mcpgateway.Ready, Backends: 1, Noise: 3, NoiseSample: "x"})
	first, err := os.Stat(w.file)
	if err != nil || first.Mode().Perm() != 0o600 {
		t.Fatalf("the note is %v, %v; want it for the user alone", first, err)
	}
	update(mcpgateway.Status{Name: "s", State: mcpgateway.Ready, Backends: 1, Noise: 3, NoiseSample: "x"})
	if again, err := os.Stat(w.file); err != nil || !os.SameFile(first, again) {
		t.Errorf("the note was written without news: %v", err)
	}
	update(mcpgateway.Status{Name: "s", State: mcpgateway.Failed, Err: "it ended"})
	update(mcpgateway.Status{Name: "s", State: mcpgateway.Ready, Backends: 1, Restarts: 1, Noise: 2, NoiseSample: "y"})
	list := Read(dir)
	if len(list) != 1 || len(list[0].Servers) != 1 {
		t.Fatalf("Read() = %+v, want this one", list)
	}
	got := list[0].Servers[0]
	at := got.At
	if got.At = (time.Time{}); at.IsZero() || got != (ServerState{Name: "s", State: mcpgateway.Ready, Backends: 1, Restarts: 1, Err: "it ended", Noise: 5, Sample: "y"}) {
		t.Errorf("Read() = %+v at %v, want the last error and all of the noise", got, at)
	}
	if err := os.Remove(w.file); err != nil {
		t.Fatal(err)
	}
	update(mcpgateway.Status{Name: "s", State: mcpgateway.Ready, Backends: 1, Restarts: 1, Noise: 2, NoiseSample: "y"})
	if len(Read(dir)) != 1 {
		t.Error("a note that somebody removed does not come back")
	}

	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	stale := map[string]string{
		"gone.json":   `{"pid":` + strconv.Itoa(gone.Process.Pid) + `,"began":"x"}`,
		"reused.json": `{"pid":` + strconv.Itoa(os.Getpid()) + `,"began":"another"}`,
		"broken.json": `{"pid":`,
	}
	for name, text := range stale {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list := Read(dir); len(list) != 1 || list[0].PID != os.Getpid() {
		t.Errorf("Read() = %+v, want this one alone", list)
	}
	for name := range stale {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s stays", name)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if list := Read(dir); len(list) != 0 {
		t.Errorf("Read() after the end = %+v", list)
	}
}
