package shim

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// Build tells this program from another build of it, and when its file was
// made, in nanoseconds since 1970; of two builds the one made later is the
// newer. A program that cannot look at itself is "" and 0.
func Build() (id string, made int64) {
	f, err := os.Open(self())
	if err != nil {
		return "", 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0
	}
	made = info.ModTime().UnixNano()
	var head [4 << 10]byte
	n, _ := io.ReadFull(f, head[:]) // a short file has no note
	if id = note(head[:n]); id == "" {
		// Copies of one build differ then, which costs a start too many.
		id = "file-" + strconv.FormatInt(info.Size(), 36) + "-" + strconv.FormatInt(made, 36)
	}
	return id, made
}

// note finds the build id that the Go linker leaves at the beginning of an ELF
// file: a note of the owner "Go" and of type 4.
func note(head []byte) string {
	const before = 8 // the sizes of the owner's name and of the id
	i := bytes.Index(head, []byte("\x04\x00\x00\x00Go\x00\x00"))
	if i < before || word(head[i-before:]) != 4 {
		return ""
	}
	size, id := word(head[i-4:]), head[i+before:]
	if size == 0 || size > len(id) || size > 256 {
		return ""
	}
	return string(id[:size])
}

// word is a number of the note. On a machine that writes numbers the other way
// round no note is found.
func word(b []byte) int {
	return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
}
