package index

import (
	"io"
	"os"
	"unsafe"
)

const (
	// largestCached is more than a segment of a million capabilities takes.
	largestCached = 1 << 30

	// leastMapped is the size of the smallest file that is mapped into memory: that
	// of some 8,000 capabilities. Smaller ones are read.
	leastMapped = 8 << 20
)

// A keptFile is the content of a kept file. It does not change: files are written
// whole under another name and then renamed.
type keptFile struct {
	data   []byte
	mapped bool // data is the file itself, for as long as the program runs
}

// openKept opens a regular file, and nothing that only looks like one: a pipe would
// keep us waiting, a device would never end.
func openKept(path string) (keptFile, bool) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return keptFile{}, false
	}
	f, err := os.Open(path)
	if err != nil {
		return keptFile{}, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestCached {
		return keptFile{}, false
	}
	if info.Size() >= leastMapped {
		if data := mapFile(f, int(info.Size())); data != nil {
			return keptFile{data: data, mapped: true}, true
		}
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return keptFile{}, false
	}
	return keptFile{data: data}, true
}

// rest tells the system that the pages of a mapped file are not needed for now. A search
// reads few of them.
func (f keptFile) rest() {
	if f.mapped {
		restMapped(f.data)
	}
}

// close lets go of a file of which nothing is used. One that a segment uses stays: a
// program maps few, and a list that is read after its file has gone would end it.
func (f keptFile) close() {
	if f.mapped {
		unmap(f.data)
	}
}

// inPlace returns bytes as the numbers that they are in a file, without a copy, if this
// machine writes numbers as files do and the bytes lie where it reads them.
func inPlace[T int8 | uint32 | uint64](data []byte) ([]T, bool) {
	var one T
	size := int(unsafe.Sizeof(one))
	if len(data) == 0 {
		return nil, true
	}
	first := unsafe.Pointer(&data[0])
	if !littleEndian() || uintptr(first)%uintptr(size) != 0 || len(data)%size != 0 {
		return nil, false
	}
	return unsafe.Slice((*T)(first), len(data)/size), true
}

func littleEndian() bool {
	n := uint16(1)
	return *(*byte)(unsafe.Pointer(&n)) == 1
}
