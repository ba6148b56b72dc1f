package confine

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// TestDropCodePages reads all pages of the program and then drops them. What is
// written to must keep its value.
func TestDropCodePages(t *testing.T) {
	written := strings.Repeat("x", 1+len(os.Args))
	var sum byte
	for _, m := range programPages(t) {
		for at := m.start; at < m.end; at += uintptr(os.Getpagesize()) {
			sum += *(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at)))
		}
	}
	t.Logf("a sum of all pages: %d", sum)
	before := resident(t)
	dropCodePages()
	after := resident(t)
	if before < 1000 || after >= before {
		t.Errorf("%d KB of the program are in memory, and %d KB were before; want less", after, before)
	}
	if written != strings.Repeat("x", 1+len(os.Args)) {
		t.Errorf("a variable has changed to %q", written)
	}
}

type mapped struct {
	start, end uintptr
	resident   int // KB
}

func resident(t *testing.T) (sum int) {
	for _, m := range programPages(t) {
		sum += m.resident
	}
	return sum
}

// programPages returns what of the program's file is mapped to be read only.
func programPages(t *testing.T) (out []mapped) {
	t.Helper()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 5 && !strings.HasSuffix(words[0], ":"):
			ours = len(words) == 6 && words[5] == exe && (words[1] == "r-xp" || words[1] == "r--p")
			if !ours {
				continue
			}
			from, to, _ := strings.Cut(words[0], "-")
			start, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			if err1 != nil || err2 != nil {
				t.Fatalf("/proc/self/smaps has the line %q", line)
			}
			out = append(out, mapped{start: uintptr(start), end: uintptr(end)})
		case ours && words[0] == "Rss:":
			out[len(out)-1].resident, _ = strconv.Atoi(words[1])
		}
	}
	return out
}
