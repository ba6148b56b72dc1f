// Package bytesize reads and writes numbers of bytes such as 64KiB and 1GB.
package bytesize

import (
	"math"
	"strconv"
	"strings"
)

const smallest = 1 << 10 // unit that is written: 20000 is plainer than 20KB

// units are how sizes are written, the largest first. KB is read and never
// written.
var units = [...]struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", smallest},
	{"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// Parse reads a whole number with a unit. A size that is too large for an int64
// is the largest one.
func Parse(s string) (n int64, ok bool) {
	for _, u := range units {
		digits, has := strings.CutSuffix(s, u.name)
		if !has {
			continue
		}
		digits = strings.TrimSuffix(digits, " ")
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || digits != strconv.FormatUint(n, 10) {
			return 0, false
		}
		if int64(n) > math.MaxInt64/u.bytes {
			return math.MaxInt64, true
		}
		return int64(n) * u.bytes, true
	}
	return 0, false
}

// Format writes a size in the largest unit that it is a multiple of. It is false
// if the plain number is best.
func Format(n int64) (s string, ok bool) {
	for _, u := range units {
		if u.bytes >= smallest && n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name, true
		}
	}
	return "", false
}
