package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
)

// A file of vectors is a list of records and nothing else:
//
//	mark   8 bytes, the same in every record
//	key   32 bytes, SHA-256 of the model's name and the text
//	dims   4 bytes, little-endian
//	bytes  dims numbers from -127 to 127, see shrink
//	sum    4 bytes, little-endian: CRC-32C of all before
//
// Since a record needs nothing before it, processes may add theirs at the same
// time, and what one left half written harms no other: it is skipped up to the
// next mark.
const (
	mark     = "\xffkenvec1"
	keyEnd   = len(mark) + sha256.Size
	dimsEnd  = keyEnd + 4
	sumSize  = 4
	mostTorn = 1000 // places that cannot be read, before a file counts as broken
	chunk    = 1 << 20
)

// A textKey stands for a text and the model that reads it.
type textKey [sha256.Size]byte

func keyOf(model, text string) textKey {
	h := sha256.New()
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(model)))
	h.Write(size[:])
	io.WriteString(h, model) // a hash takes everything
	io.WriteString(h, text)
	return textKey(h.Sum(nil))
}

func recordSize(dims int) int { return dimsEnd + dims + sumSize }

// appendRecord adds a record to dst.
func appendRecord(dst []byte, key textKey, small []int8) []byte {
	from := len(dst)
	dst = append(dst, mark...)
	dst = append(dst, key[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(small)))
	for _, x := range small {
		dst = append(dst, byte(x))
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[from:]))
}

// checksum is the one that processors have an instruction for. Its table is
// the library's own, made once, when it is first asked for.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// readRecord reads the record that data begins with. Without ok there is none,
// or, with short, not enough of it to tell.
func readRecord(data []byte) (key textKey, small []byte, short, ok bool) {
	if len(data) < dimsEnd {
		return key, nil, bytes.HasPrefix(data, []byte(mark)) || bytes.HasPrefix([]byte(mark), data), false
	}
	if string(data[:len(mark)]) != mark {
		return key, nil, false, false
	}
	dims := binary.LittleEndian.Uint32(data[keyEnd:])
	if dims == 0 || dims > maxDimensions {
		return key, nil, false, false
	}
	size := recordSize(int(dims))
	if len(data) < size {
		return key, nil, true, false
	}
	if binary.LittleEndian.Uint32(data[size-sumSize:]) != checksum(data[:size-sumSize]) {
		return key, nil, false, false
	}
	copy(key[:], data[len(mark):keyEnd])
	return key, data[dimsEnd : size-sumSize], false, true
}

// A place is where a record is in a file.
type place struct {
	offset int64
	dims   int32
}

// A scan is what was read of a file.
type scan struct {
	places map[textKey]place
	next   int64 // where to read on; what is before it is settled
	torn   int   // places that could not be read
	lost   int64 // bytes there
}

// read goes through a file from where the last read ended up to size. A record
// at the end that is not whole may still be being written; it is looked at
// again by the next read.
func (s *scan) read(file io.ReaderAt, size int64) error {
	at := s.next // where the buffer ends in the file
	if size <= at {
		return nil
	}
	buffer := make([]byte, 0, min(chunk, size-at))
	for !s.broken() {
		if len(buffer) == cap(buffer) { // a record is longer than what was to be read
			buffer = append(make([]byte, 0, cap(buffer)+recordSize(maxDimensions)), buffer...)
		}
		want := min(int64(cap(buffer)-len(buffer)), size-at)
		if want <= 0 {
			return nil
		}
		n, err := file.ReadAt(buffer[len(buffer):len(buffer)+int(want)], at)
		buffer, at = buffer[:len(buffer)+n], at+int64(n)
		done := s.settle(buffer)
		buffer = buffer[:copy(buffer, buffer[done:])]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle takes the records that data begins with, and says how many bytes of it
// are settled.
func (s *scan) settle(data []byte) int {
	done := 0
	for done < len(data) && !s.broken() {
		key, small, short, ok := readRecord(data[done:])
		step := recordSize(len(small))
		switch {
		case ok:
			s.places[key] = place{s.next, int32(len(small))} // the latest counts
		case short && !holdsRecord(data[done+1:]): // or its length is wrong
			return done
		default:
			step = toMark(data[done+1:]) + 1
			s.torn++
			s.lost += int64(step)
		}
		done += step
		s.next += int64(step)
	}
	return done
}

// holdsRecord reports whether there is a whole record somewhere in data.
func holdsRecord(data []byte) bool {
	for {
		data = data[toMark(data):]
		if _, _, _, ok := readRecord(data); ok || len(data) < dimsEnd {
			return ok
		}
		data = data[1:]
	}
}

// toMark counts the bytes before the next mark, or the beginning of one.
func toMark(data []byte) int {
	if i := bytes.Index(data, []byte(mark)); i >= 0 {
		return i
	}
	for tail := min(len(mark)-1, len(data)); tail > 0; tail-- {
		if bytes.HasSuffix(data, []byte(mark[:tail])) {
			return len(data) - tail
		}
	}
	return len(data)
}

// broken reports whether the file is not worth going on with: something else,
// or more lost than kept.
func (s *scan) broken() bool { return s.torn > mostTorn || s.lost > chunk && s.lost > s.next/2 }

// foreign reports whether nothing of what was read is a record.
func (s *scan) foreign() bool { return s.broken() || s.torn > 0 && len(s.places) == 0 }

// shrink takes one byte of each number of a vector of unit length. It returns
// nothing for one that says nothing, or is none.
func shrink(v []float32) []int8 {
	var most float32
	for _, x := range v {
		if x != x {
			return nil
		}
		most = max(most, x, -x)
	}
	if !(most > 1e-30) || math.IsInf(float64(most), 0) || len(v) > maxDimensions {
		return nil
	}
	small := make([]int8, len(v))
	for i, x := range v {
		small[i] = int8(math.Round(float64(x) / float64(most) * 127))
	}
	return small
}

// grow makes a vector of unit length of the bytes of one.
func grow[T byte | int8](small []T) []float32 {
	sum := 0
	for _, b := range small {
		sum += int(int8(b)) * int(int8(b))
	}
	v := make([]float32, len(small))
	if sum == 0 {
		return v // no record of ours, but no reason to divide by it
	}
	scale := float32(1 / math.Sqrt(float64(sum)))
	for i, b := range small {
		v[i] = float32(int8(b)) * scale
	}
	return v
}
