package embed

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// TestGiveBack: memory of the program's file is given back and read again from
// there; other memory stays as it is.
func TestGiveBack(t *testing.T) {
	m := Builtin()
	want := m.Append(nil, "send a letter")
	if at := uintptr(unsafe.Pointer(unsafe.StringData(builtin))); !ofFile(at, uintptr(len(builtin))) {
		t.Fatal("the model is no part of a file that cannot be written to")
	}
	if strings.Count(builtin, "\x00") == 0 { // which reads all of it
		t.Fatal("the model has no zeros")
	}
	before := resident(t)
	GiveBack(builtin)
	if after := resident(t); after > before-len(builtin)/2 {
		t.Errorf("%d bytes of files are in memory after %d, want %d fewer", after, before, len(builtin))
	}
	if got := m.Append(nil, "send a letter"); !slices.Equal(got, want) {
		t.Error("another vector afterwards")
	}

	own := strings.Repeat("a text on the heap ", 1<<12)
	GiveBack(own)
	if own != strings.Repeat("a text on the heap ", 1<<12) {
		t.Error("a text on the heap has changed")
	}
}

// resident is how much of files this process has in memory.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "RssFile:")
	kb := 0
	for _, r := range strings.TrimSpace(rest) {
		if r < '0' || r > '9' {
			break
		}
		kb = 10*kb + int(r-'0')
	}
	return kb << 10
}
